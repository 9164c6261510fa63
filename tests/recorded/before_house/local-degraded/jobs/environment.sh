#!/bin/bash
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ "$#" -gt 0 ] || set -- "${SHELL:-/bin/bash}"
exec "$@"
