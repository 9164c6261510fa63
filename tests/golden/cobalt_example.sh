#!/bin/bash
#COBALT --jobname gpc-7f3a2b-1
#COBALT -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#COBALT -e /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#COBALT -q full-node
#COBALT -A datascience
#COBALT -t 00:30:00
#COBALT -n 1
