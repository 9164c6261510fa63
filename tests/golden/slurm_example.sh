#!/bin/bash
#SBATCH -J gpc-7f3a2b-1
#SBATCH -p gpu
#SBATCH -A phys0042
#SBATCH -n 1
#SBATCH --cpus-per-task=16
#SBATCH --mem=122880M
#SBATCH -t 04:00:00
#SBATCH -o /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/logs/gpc-7f3a2b-1.%a.out
#SBATCH -N 1
#SBATCH --gpus-per-node=a100:2
#SBATCH --qos=normal
export GPUCLUSTER_JOB=gpc-7f3a2b-1_${SLURM_ARRAY_TASK_ID:-0}
GPUCLUSTER_RESTARTS=${SLURM_RESTART_COUNT:-0}
export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"
[ "$GPUCLUSTER_RESTARTS" = 0 ] || GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"
GPUCLUSTER_DIRECTORY=/home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b
exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1
echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"
export OMP_NUM_THREADS=8
export MKL_NUM_THREADS=8
export OPENBLAS_NUM_THREADS=8
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone
echo "gpucluster: in environment.prologue since $(date +%FT%T%z)"
prologue_failed() {
    [ "$4" = "$prologue_depth" ] || return 0  # a file that the prologue reads may fail in parts
    line=$(sed -n "$2p" "$0" 2>/dev/null)
    case $1 in
        126) words=": command cannot be executed" ;;
        127) words=": command not found" ;;
        *) words= ;;
    esac
    echo "gpucluster: environment.prologue: exit code $1$words: ${line:-$3}"
    [ -z "$words" ] || exit "$1"
}
prologue_depth=${#BASH_SOURCE[@]}
trap 'prologue_failed $? $LINENO "$BASH_COMMAND" ${#BASH_SOURCE[@]}' ERR
module load cuda/12.4
trap - ERR
export GPUCLUSTER_LEFT=$((14340 - SECONDS))
[ "$GPUCLUSTER_LEFT" -le 0 ] || export DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION="${DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION:-$GPUCLUSTER_LEFT s}"
GPUCLUSTER_CORES=$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
[ "$GPUCLUSTER_CORES" -ge 2 ] || echo "Warning: $GPUCLUSTER_CORES cores for 2 threads"
echo "gpucluster: starting Python since $(date +%FT%T%z)"
/opt/dask/bin/python /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/jobs/workerstart.py -m dask_cuda.cli --scheduler-file /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/scheduler.json --name "$GPUCLUSTER_WORKER" --nthreads 1 --memory-limit 64424509440 --death-timeout 60 --interface ib0 --no-dashboard --dashboard-address 127.0.0.1:0 --protocol tls --tls-ca-file /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/tls/ca.pem --tls-cert /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/tls/worker-cert.pem --tls-key /home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b/tls/worker-key.pem &
worker=$!
guard() {
    trap 'kill $! 2>/dev/null; exit' TERM
    "$(command -v /opt/dask/bin/python python3 | head -n 1)" -IS "$GPUCLUSTER_DIRECTORY/jobs/guard.py" "$GPUCLUSTER_DIRECTORY" \
        "$GPUCLUSTER_JOB" "$worker" 45 180 &
    if wait $!; [ $? = 75 ]; then
        kill "$worker" 2>/dev/null
        sleep 15 & wait $!
        kill -KILL 0
    fi
}
guard &
guard=$!
trap 'kill "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
kill "$guard" 2>/dev/null
# The disk may hang, which must not keep the job.
{
    rm -f "$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB"
    echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
} &
for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$!" 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$!" 2>/dev/null
exit "$code"
