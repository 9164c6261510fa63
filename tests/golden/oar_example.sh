#!/bin/bash
#OAR -n gpc-7f3a2b-1
#OAR -q default
#OAR --project lab7
#OAR -l /nodes=1/gpu=2,walltime=04:00:00
#OAR -O /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#OAR -E /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#OAR -t besteffort
