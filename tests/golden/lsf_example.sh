#!/bin/bash
#BSUB -J gpc-7f3a2b-1
#BSUB -q gpu
#BSUB -P "phys0042"
#BSUB -n 8
#BSUB -R "span[hosts=1]"
#BSUB -M 60000
#BSUB -W 02:00
#BSUB -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#BSUB -gpu "num=2:j_exclusive=yes"
