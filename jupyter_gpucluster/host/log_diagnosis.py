"""Explain the last lines of a job's log where they hide the cause."""

from __future__ import annotations

import re
from collections.abc import Sequence

ERROR_LINE = re.compile(
    r"(command not found|: not found$|No such file|Permission denied|No module named"
    r"|[A-Za-z.]*(Error|Exception)\b)"
)
"""A line of a log that names an error."""
LOG_END = 3
"""Number of last lines to show of a log without a known sign."""
GPU_CAUSES = (
    # dask-cuda formats a UUID as a number where it wanted to warn that NVML does not know it.
    (
        r"%d format: a real number is required, not str",
        "CUDA_VISIBLE_DEVICES names a GPU that NVML does not know on this node: give whole UUIDs"
        " as `nvidia-smi -L` prints them, or leave it to the batch system.",
    ),
    (
        r"Devices in CUDA_VISIBLE_DEVICES must be|nvmlDeviceGetHandleByIndex.*Not Found",
        "The job was given no GPU (CUDA_VISIBLE_DEVICES is empty or names none): ask for GPUs in"
        " the way that the site wants, see job.gpu_request and job.directives.",
    ),
    (
        r"LibRmVersionMismatch|Driver/library version mismatch",
        "Driver and NVML differ on this node, which was updated: it needs a restart.",
    ),
    (
        r"NVMLError_LibraryNotFound|NVML Shared Library Not Found|libnvidia-ml\.so",
        "There is no NVIDIA driver where the worker runs: the job's node has no GPU, or its"
        " container was started without GPUs.",
    ),
    (
        r"NVMLError_DriverNotLoaded",
        "The NVIDIA driver of this node is not loaded; report it to the site.",
    ),
    (
        r"CUDA driver version is insufficient",
        "The node's driver is older than the CUDA of the workers' environment: take a package"
        " for an older CUDA, or ask the site for a newer driver.",
    ),
    (
        r"CUDA-capable device\(s\) is/are busy or unavailable",
        "Another process uses the GPU, which admits one process only: ask for whole GPUs.",
    ),
    (
        r"invalid device ordinal",
        "The job sees fewer GPUs than workers were started: one worker for each GPU that"
        " CUDA_VISIBLE_DEVICES names is the most.",
    ),
    (
        r"RMM failure|rmm.*bad_alloc|std::bad_alloc: out_of_memory",
        "The GPU had less free memory than the pool takes: make workers.rmm_pool smaller (at most"
        " nine tenths of the card or slice), or see who else uses the GPU.",
    ),
    (
        r"No module named '?dask_cuda",
        "dask-cuda is not installed in the workers' environment: install dask-cuda[cu12] or"
        " dask-cuda[cu13] there.",
    ),
    (
        r"No module named '?rmm",
        "RMM is not installed in the workers' environment: install rmm-cu12 or rmm-cu13 there, or"
        " leave workers.rmm_pool and workers.rmm_async out.",
    ),
    (
        r"No module named '?cudf",
        "cuDF is not installed in the workers' environment: install it there, or leave"
        " workers.cudf_spill out.",
    ),
)
"""Signs in the log of a GPU worker and their explanations; the first match counts."""

JOB_CAUSES = (
    (
        r"No space left on device",
        "A file system of the node is full: free some space, or set workers.local_directory to"
        " another one.",
    ),
    (
        r"Disk quota exceeded",
        "Your quota is used up: delete files, or keep clusters on another file system"
        " (JUPYTER_DATA_DIR).",
    ),
    (
        r"/logs/\S+\.log: (?:No such file or directory|Permission denied)",
        "The node does not see the cluster's directory: keep it on a file system that the nodes"
        " share (JUPYTER_DATA_DIR).",
    ),
    (
        r"No module named '?(?:dask|distributed)\b",
        "The job's Python has no Dask: install dask and distributed there, or choose another"
        " Python or kernel for the cluster.",
    ),
    (
        r"No module named 'encodings'",
        "PYTHONHOME or PYTHONPATH leads the job's Python astray: unset it in environment.prologue.",
    ),
    (
        r"python[\d.]*: (?:No such file or directory|Permission denied|cannot execute)",
        "The node cannot run the cluster's Python: choose one that lies on a file system which the"
        " nodes share, and that its users may enter.",
    ),
    (
        r"\bmodule: command not found",
        "The node's shell does not know modules: begin environment.prologue with the line that"
        " defines them, such as 'source /etc/profile.d/modules.sh'.",
    ),
    (
        r"Unable to locate a modulefile|The following module\(s\) are unknown",
        "The node has no module of that name: correct environment.prologue (see: module avail).",
    ),
    (
        r"not been properly configured to use 'conda activate'|Run 'conda init' before",
        "The node's shell does not know `conda activate`: begin environment.prologue with the line"
        " that defines it, such as 'source <conda>/etc/profile.d/conda.sh', or name the"
        " environment's Python instead (environment.python).",
    ),
    (
        r"EnvironmentNameNotFound|EnvironmentLocationNotFound",
        "The node has no conda environment of that name: correct environment.prologue, or name the"
        " environment's Python instead (environment.python).",
    ),
    (
        r"Permission denied \((?:publickey|gssapi|password|keyboard|hostbased)",
        "The job's first node may not log in to the others without a password: make a key for it"
        " (ssh-keygen, and add the public one to ~/.ssh/authorized_keys), or use another launcher.",
    ),
    (
        r"Host key verification failed",
        "A node that ssh does not know was refused: add '-oStrictHostKeyChecking=accept-new' to"
        " launcher.args, if the site allows that.",
    ),
    (
        r"pam_slurm_adopt|ssh: (?:connect to host|Could not resolve hostname)",
        "The job's first node does not reach the others by ssh, or the site has closed it: use"
        " another launcher, such as srun.",
    ),
    (
        r"Exec format error",
        "The cluster's Python is made for another kind of processor than the node has: choose one"
        " that was installed for it.",
    ),
    (
        r"version `GLIBC\w*_[\d.]+' not found",
        "The cluster's Python wants a newer system than the node's: choose one that was installed"
        " for it.",
    ),
    (
        r"can't open file '[^']*/workerstart\.py'",
        "What runs there does not see the cluster's directory: let the container have it (Shifter"
        " mounts what its site says), or keep it on a file system that the nodes share"
        " (JUPYTER_DATA_DIR).",
    ),
    (
        r"FATAL: +could not open image|error: pyxis: |(?i:failed to lookup docker image)",
        "The container could not be started on the node: see that its image is there and is what"
        " environment.container.image says.",
    ),
    (
        r"in _init_workspace\b",
        "The node has no such directory for workers' data, or does not allow to make one: correct"
        " workers.local_directory.",
    ),
    (
        # PBS and Torque: "job killed: vmem 9kb exceeded limit 8kb"; Slurm: "Exceeded job memory
        # limit", "exceeded virtual memory limit"; LSF: "after reaching LSF memory usage limit";
        # numpy: "_ArrayMemoryError".  RMM's MemoryError is about the GPU.
        r"(?i:oom[-_ ]kill|out of memory: kill|exceeded (?:\w+ )?memory limit"
        r"|\b[pv]*mem(?:ory)?\b.{0,60} exceeded limit|TERM_MEMLIMIT|reaching LSF memory)"
        r"|\b(?:_Array)?MemoryError\b(?!: std::bad_alloc)",
        "The job used more memory than it may: ask for more (job.memory), or for fewer workers on"
        " it (workers.per_job).",
    ),
    (
        r"(?i)unable to create step for job \d+: |not enough slots available",
        "The launcher wants more of the job's nodes than the job was given: see job.cpus, job.gpus"
        " and launcher.ranks_per_node.",
    ),
    (
        r": command not found|: \d+: (?:exec: )?\S+: not found\b",  # bash, dash
        "The node has no such command: correct environment.prologue, or load there what brings it.",
    ),
    (
        r"is not a valid network interface",
        "The node has no network interface of that name: correct network.interface (see: ip"
        " -brief address, on a node).",
    ),
    (
        r"(?i:certificate.verify.failed)",
        "The node does not accept the scheduler's certificate: do the clocks of node and head"
        " agree?",
    ),
    (
        r"No such option|unrecognized arguments",
        "The worker does not know one of its options: correct workers.extra_args.",
    ),
    (
        r"Timed out starting worker",
        "The worker did not reach the scheduler: name a network that nodes and head share"
        " (network.interface, head.interface), and see that no firewall is between them.",
    ),
)
"""The same for any job whose worker never connected."""


REMARKS = (
    (
        r"^Warning: \d+ cores for \d+ threads$",
        "The workers of a job are bound to fewer cores than they have threads: ask for cores"
        " (job.cpus), and let the launcher bind a rank to all of its own (jsrun --bind rs, srun"
        " --cpu-bind=none, mpirun --bind-to none, in launcher.args). Where a library binds them,"
        " set OMP_PROC_BIND to FALSE in environment.variables.",
    ),
    (
        r"Setting CPU affinity for GPU failed|Cannot get CPU affinity for device",
        "The worker is not bound to the cores next to its GPU, since its job has others: ask for"
        " whole nodes or for more cores (job.cpus).",
    ),
    (
        r"A CUDA context for device .* already exists",
        "A library used the GPUs before dask-cuda did, so memory may be taken from the first GPU"
        " instead of the worker's: import it in tasks, not when workers start (with RAPIDS"
        " libraries, set RAPIDS_NO_INITIALIZE in environment.variables).",
    ),
    (
        r"but instead the CUDA context is on device",
        "The worker computes on another GPU than its own, since a library used the GPUs before"
        " dask-cuda did: import it in tasks, not when workers start.",
    ),
    (
        r"(?i:nvml\w*.*insufficient|insufficient.*nvml)",
        "The driver does not let the worker read its GPU (NVML): there may be no readings, and"
        " idle GPUs are not noticed.",
    ),
    (
        r"When using NVLink we recommend setting a",
        "UCX over NVLink is slow without a pool of device memory: set workers.rmm_pool.",
    ),
)
"""Warnings in the log of a worker that runs, and their explanations."""


def remarks(log: str) -> list[str]:
    """Return explanations of the warnings in the log of a worker that runs."""
    return [words for sign, words in REMARKS if re.search(sign, log, re.MULTILINE)]


def diagnose(log: str) -> str:
    """Return the cause and its fix, or empty text if the log has no known sign."""
    return next((words for sign, words in (*GPU_CAUSES, *JOB_CAUSES) if re.search(sign, log)), "")


def first_error(lines: Sequence[str]) -> str:
    """Return the last line of a log that names an error, and what is behind it."""
    found = next((line for line in reversed(lines) if ERROR_LINE.search(line)), "")
    said = "".join(c for c in found.strip() if c.isprintable())[:200]
    meant = diagnose("\n".join(lines))
    return f"{meant} ({said})" if meant and said else meant or said


def log_end(lines: Sequence[str]) -> str:
    """Return the last lines of a log as one sentence, empty where it has none."""
    shown = ("".join(c for c in line.strip() if c.isprintable())[:200] for line in lines)
    last = [line for line in shown if line][-LOG_END:]
    return f"Its log ends: {' | '.join(last)}" if last else ""
