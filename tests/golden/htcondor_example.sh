#!/bin/bash
#CONDOR batch_name = gpc-7f3a2b-1
#CONDOR RequestCpus = 8
#CONDOR RequestMemory = 32768
#CONDOR output = /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.$(ProcId).out
#CONDOR error = /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.$(ProcId).out
#CONDOR stream_output = True
#CONDOR stream_error = True
#CONDOR accounting_group = group_physics
#CONDOR request_gpus = 1
#CONDOR require_gpus = regexp("A100", DeviceName)
#CONDOR periodic_remove = (JobStatus == 5 && HoldReasonCode =!= 1 && NumJobStarts > 0) || (JobStatus == 2 && time() - JobCurrentStartDate > 28800)
