#!/bin/bash
#PBS -N gpc-7f3a2b-1
#PBS -q gpu
#PBS -A phys0042
#PBS -l select=1:ncpus=8:mem=60GB:ngpus=2
#PBS -l walltime=02:00:00
#PBS -j oe
#PBS -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#PBS -m n
