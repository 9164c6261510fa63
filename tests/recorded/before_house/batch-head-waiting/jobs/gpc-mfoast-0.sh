#!/bin/bash
#SBATCH -J gpc-mfoast-0
#SBATCH -p cpu
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=900M
#SBATCH -t 00:10:00
#SBATCH -o /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/logs/gpc-mfoast-0.%a.out
#SBATCH -N 1
export GPUCLUSTER_JOB=gpc-mfoast-0_${SLURM_ARRAY_TASK_ID:-0}
GPUCLUSTER_RESTARTS=${SLURM_RESTART_COUNT:-0}
export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"
[ "$GPUCLUSTER_RESTARTS" = 0 ] || GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"
GPUCLUSTER_DIRECTORY=/home/ann/.local/share/jupyter/gpucluster/clusters/mfoast
exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1
echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone
rm -f "$GPUCLUSTER_DIRECTORY/scheduler.json"
GPUCLUSTER_SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/gpc-mfoast-XXXXXXXX") || exit
# A process group of their own: the head ends its workers and lives on.  They wait for its file.
set -m
{
echo "gpucluster: starting Python since $(date +%FT%T%z)"
/opt/dask/bin/python /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/jobs/workerstart.py -m distributed.cli.dask_worker --scheduler-file /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/scheduler.json --name "$GPUCLUSTER_WORKER" --nthreads 1 --memory-limit 943718400 --nanny --death-timeout 60 --interface lo --no-dashboard --dashboard-address 127.0.0.1:0 --protocol tls --tls-ca-file /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/tls/ca.pem --tls-cert /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/tls/worker-cert.pem --tls-key /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast/tls/worker-key.pem &
worker=$!
trap 'kill "$worker" 2>/dev/null' TERM
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
} &
workers=$!
set +m
# Before the head is there, too: the shell alone would end, and leave it behind.
told= head=
trap 'told=1; kill "$head" 2>/dev/null' TERM INT
/opt/dask/bin/python -P /opt/gpucluster/jupyter_gpucluster/head/__main__.py head --directory /home/ann/.local/share/jupyter/gpucluster/clusters/mfoast --scratch "$GPUCLUSTER_SCRATCH" --workers "$workers" >>"$GPUCLUSTER_DIRECTORY/logs/head.log" 2>&1 &
head=$!
[ -z "$told" ] || kill "$head" 2>/dev/null
wait "$head"
code=$?
while kill -0 "$head" 2>/dev/null; do wait "$head"; code=$?; done
kill -TERM -- "-$workers" 2>/dev/null
for ((tries = 0; tries < 50; tries++)); do
    kill -0 -- "-$workers" 2>/dev/null || break
    sleep 0.2
done
kill -KILL -- "-$workers" 2>/dev/null
rm -rf "$GPUCLUSTER_SCRATCH"
exit "$code"
