#!/bin/bash
#PBS -N gpc-7f3a2b-1
#PBS -q batch
#PBS -A gfdl_x
#PBS -l nodes=1:ppn=6:gpus=1
#PBS -l walltime=01:00:00
#PBS -l mem=16GB
#PBS -j oe
#PBS -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.out
