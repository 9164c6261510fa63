#!/bin/sh
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone
exec /opt/dask/bin/python /home/ann/.local/share/jupyter/gpucluster/clusters/xi2kbg/jobs/workerstart.py -m distributed.cli.dask_worker --scheduler-file /home/ann/.local/share/jupyter/gpucluster/clusters/xi2kbg/scheduler.json --nthreads 2 --memory-limit 25276514304 --death-timeout 60 --host 127.0.0.1 --no-dashboard --dashboard-address 127.0.0.1:0 --protocol tls --tls-ca-file /home/ann/.local/share/jupyter/gpucluster/clusters/xi2kbg/tls/ca.pem --tls-cert /home/ann/.local/share/jupyter/gpucluster/clusters/xi2kbg/tls/worker-cert.pem --tls-key /home/ann/.local/share/jupyter/gpucluster/clusters/xi2kbg/tls/worker-key.pem --local-directory /scratch/gpc-xi2kbg-7qgj1cgz --name "$GPUCLUSTER_WORKER"
