#!/bin/bash
#$ -N gpc-7f3a2b-1
#$ -q gpu.q
#$ -P phys
#$ -l h_rt=08:00:00
#$ -cwd
#$ -j y
#$ -pe smp 4
#$ -l h_vmem=8192M
#$ -l gpu=1
#$ -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
#$ -S /bin/bash
