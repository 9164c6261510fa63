"""What the last lines of a job's log mean where its worker never came up, and the way out."""

from __future__ import annotations

CAUSES = (
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
        "The node has no such directory for workers' data, or lets nobody make one: correct"
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
"""Signs in a log and what they mean; the first that is found counts."""
