#!/bin/bash
#SBATCH -J gpc-3hrpj4-3
#SBATCH -p cpu
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=600M
#SBATCH -t 00:10:00
#SBATCH -o /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/logs/gpc-3hrpj4-3.%a.out
#SBATCH -N 1
export GPUCLUSTER_JOB=gpc-3hrpj4-3_${SLURM_ARRAY_TASK_ID:-0}
GPUCLUSTER_RESTARTS=${SLURM_RESTART_COUNT:-0}
export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"
[ "$GPUCLUSTER_RESTARTS" = 0 ] || GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"
GPUCLUSTER_DIRECTORY=/home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4
exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1
echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone
export GPUCLUSTER_LEFT=$((540 - SECONDS))
[ "$GPUCLUSTER_LEFT" -le 0 ] || export DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION="${DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION:-$GPUCLUSTER_LEFT s}"
echo "gpucluster: starting Python since $(date +%FT%T%z)"
/opt/dask/bin/python /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/jobs/workerstart.py -m distributed.cli.dask_worker --scheduler-file /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/scheduler.json --name "$GPUCLUSTER_WORKER" --nthreads 1 --memory-limit 629145600 --nanny --death-timeout 60 --interface lo --no-dashboard --dashboard-address 127.0.0.1:0 --protocol tls --tls-ca-file /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/tls/ca.pem --tls-cert /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/tls/worker-cert.pem --tls-key /home/ann/.local/share/jupyter/gpucluster/clusters/3hrpj4/tls/worker-key.pem &
worker=$!
# The lease and the file beside it get their times from one file server: no two clocks compared.
guard() {
    trap 'kill $! 2>/dev/null; exit' TERM
    beside="$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB" before= silent=0
    while kill -0 "$worker" 2>/dev/null; do
        sleep 30 & wait $!
        # Looks are counted: neither a suspended job nor a file server that hangs is silence.
        silent=$((silent + 30))
        why="The cluster's lease could not be read for $silent s"
        if seen=$(stat -c %Y "$GPUCLUSTER_DIRECTORY/lease" 2>/dev/null); then
            [ "$seen" = "$before" ] || silent=0
            before=$seen
            # Where this file cannot be made, the lease must still change.
            true 2>/dev/null >"$beside" && now=$(stat -c %Y "$beside" 2>/dev/null) || now=0
            [ $((now - seen)) -le 180 ] || silent=$((now - seen))
            why="The cluster's scheduler process has not renewed its lease for $silent s"
        fi
        if [ "$silent" -ge 180 ]; then
            echo "$why: ending this job."
            kill "$worker" 2>/dev/null
            sleep 15 & wait $!
            kill -KILL 0
        fi
    done
}
guard &
guard=$!
trap 'kill "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
kill "$guard" 2>/dev/null
rm -f "$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB"
echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
exit "$code"
