"""The sections of a profile: what one job, its workers, the head and the network are like."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from .values import (
    Arguments,
    Duration,
    DurationOrNone,
    Flag,
    LoginHop,
    MemoryAutoOrNone,
    MemoryOrNone,
    Natural,
    NaturalOrAuto,
    PortRange,
    Positive,
    PositiveOrAuto,
    PositiveOrNone,
    PythonPath,
    Text,
    VariableName,
)

LauncherName = Literal["none", "srun", "mpirun", "mpiexec", "jsrun", "aprun", "ssh"]


class Section(BaseModel):
    """A mapping of a profile: unknown keys are errors, values never change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, use_attribute_docstrings=True
    )


class Job(Section):
    """Requests of one job."""

    nodes: Positive = 1
    """Nodes of one job."""
    gpus: NaturalOrAuto = "auto"
    """GPUs of one job, over all its nodes. `auto`: on backend `local` one for each job while
    the machine has GPUs, else none; on other backends none."""
    gpu_request: Text = ""
    """How the request for GPUs is spelled, such as `gres` or `none`; the page of the backend
    lists the ways. Empty: the system's usual way."""
    gpu_type: Text = ""
    """Type of GPU to request, as the site calls it."""
    cpus: PositiveOrNone = None
    """CPU cores of one job; empty: not requested."""
    memory: MemoryOrNone = None
    """Memory of one job; empty: not requested."""
    cpus_per_gpu: PositiveOrNone = None
    """Replaces `cpus` if the job requests GPUs, whose number an option may set."""
    memory_per_gpu: MemoryOrNone = None
    """Replaces `memory` in the same way."""
    memory_request: Text = ""
    """How the request for memory is spelled: on Slurm `mem-per-cpu` or `mem-per-gpu`; on Grid
    Engine the site's complexes, such as `h_vmem` or `mem_free,h_vmem`, each with `/job` behind
    it if it counts once a job and not once a slot; on OAR the property that holds the MiB of a
    core, such as `mem_core`. `none`: not requested. Empty: the system's usual way."""
    walltime: DurationOrNone = None
    """Time after which the batch system ends the job; empty: its own default."""
    submit_by: Literal["auto", "stdin", "file"] = "auto"
    """How LSF's bsub gets the script: on its standard input, or by its path, where the site has
    it read the #BSUB lines of a file. `auto`: by its path in easy mode only."""
    queue: Text = ""
    """Queue or partition."""
    account: Text = ""
    """Project that the time is charged to; on Kubernetes the namespace."""
    directives: tuple[Text, ...] = ()
    """Lines added to the head of the job script, without the system's prefix."""
    skip_directives: tuple[Text, ...] = ()
    """Generated lines that contain one of these texts are left out; blanks count, and lines
    from `directives` are never left out."""
    submit_args: Arguments = ()
    """More arguments of the command that submits, word by word and without a shell, for what no
    directive can say. They come right after the command's name."""
    cancel_args: Arguments = ()
    """The same for the command that ends jobs."""


class Workers(Section):
    """Resources and settings of each worker of a job."""

    per_job: PositiveOrAuto = "auto"
    """Workers in one job. `auto`: one for each GPU of the job, or one without GPUs."""
    threads: PositiveOrAuto = "auto"
    """Threads of one worker. `auto`: 1 for GPU workers, else its share of the job's cores."""
    memory_limit: MemoryAutoOrNone = "auto"
    """Memory at which a worker is restarted. `auto`: its share of the job's memory, on
    `local` of the machine's; empty: no limit."""
    device_memory_limit: MemoryAutoOrNone = "auto"
    """GPU memory at which a worker moves data to main memory. `auto`: what dask-cuda
    chooses; empty: never."""
    rmm_pool: MemoryOrNone = None
    """GPU memory that each worker reserves at its start (RMM pool), which makes allocations fast.
    At most nine tenths of the card or slice; empty: no pool."""
    rmm_async: Flag = False
    """Whether RMM allocates with CUDA's own asynchronous pool, which gives memory back; not
    together with `rmm_pool`."""
    rmm_libraries: tuple[Literal["cupy", "torch"], ...] = ()
    """Libraries of the workers' environment that allocate with RMM too, besides those of RAPIDS."""
    cudf_spill: Flag = False
    """Whether cuDF moves its data to main memory where GPU memory is short; set `CUDF_SPILL=on`
    for the notebook's kernel too."""
    cpu_affinity: Literal["gpu", "job"] = "gpu"
    """`gpu`: each GPU worker runs on the cores next to its GPU; `job`: on all cores of its job,
    for tasks that compute on the CPU as well."""
    local_directory: Text = ""
    """Where workers put data that does not fit into memory; variables are expanded on the node.
    Empty: what Dask chooses."""
    resources: dict[VariableName, Positive] = {}
    """What each worker has for tasks that ask for it, such as `{GPU: 1}`."""
    extra_args: tuple[Text, ...] = ()
    """Arguments added to the worker's command."""

    @model_validator(mode="after")
    def _one_kind_of_memory(self) -> Workers:
        if self.rmm_async and self.rmm_pool is not None:
            raise ValueError("`rmm_pool` and `rmm_async` exclude each other; keep one")
        if self.rmm_libraries and not self.rmm_async and self.rmm_pool is None:
            raise ValueError("`rmm_libraries` needs `rmm_pool` or `rmm_async`")
        return self


class Launcher(Section):
    """The program that starts a job's processes on its nodes."""

    name: LauncherName = "none"
    """The command; `none` starts one worker process."""
    args: tuple[Text, ...] = ()
    """Arguments of the launcher; they replace generated ones of the same name."""
    command: Text = ""
    """Program to run where it is not found under its name, such as a path."""
    mpi: Literal["auto", "openmpi", "mpich", "pals"] = "auto"
    """Family of `mpirun` or `mpiexec`: `openmpi`, `mpich` (Intel MPI too), `pals` (HPE Cray).
    `auto`: `mpirun` is Open MPI's, `mpiexec` MPICH's."""
    ranks_per_node: PositiveOrAuto = "auto"
    """Processes on each node, which share its workers and GPUs evenly. `auto`: one, which holds
    all workers of the node."""


class Group(Section):
    """Workers of another kind on the same scheduler, such as CPU workers beside GPU workers."""

    count: Positive
    """How many workers of this kind there are."""
    job: Job = Job.model_construct()
    """Like the profile's `job`, without GPUs; `queue`, `account` and `walltime` are the
    profile's where they are left out."""
    workers: Workers = Workers.model_construct()
    """Like the profile's `workers`."""


class Head(Section):
    """Place and resources of the process that runs the Dask scheduler."""

    placement: Literal["server", "job"] = "server"
    """`server`: a process beside Jupyter; `job`: inside a job."""
    interface: Text | None = None
    """Interface that the scheduler listens on; empty: that of `network`."""
    submit: Literal["direct", "relay"] = "direct"
    """For placement `job`. `direct`: the head runs the submit commands itself; `relay`: a
    process on the Jupyter host runs them, for nodes without these commands."""
    directory: Text = ""
    """Directory for the cluster's files, such as `$SCRATCH/clusters`, which the jobs must see;
    variables are those of the process that starts the cluster. Empty: below Jupyter's data
    directory."""
    gpus: Natural = 0
    """GPUs that the head's own job requests under placement `job`, beside those of its workers."""

    @model_validator(mode="after")
    def _in_job(self) -> Head:
        if self.gpus and self.placement != "job":
            raise ValueError(
                "the head's own job requests `gpus`, so it needs `placement: job`; beside Jupyter"
                " the head sees the GPUs of that machine"
            )
        return self


class ExistingTls(Section):
    """Files of a client of an encrypted scheduler."""

    ca: Text
    """Path of the authority's certificate."""
    cert: Text
    """Path of the client's certificate."""
    key: Text
    """Path of the client's key."""


class Existing(Section):
    """A scheduler that another program started, for backend `existing`."""

    address: Text = ""
    """Its address, such as `tls://host:8786`."""
    scheduler_file: Text = ""
    """File that the scheduler wrote about itself, instead of its address."""
    tls: ExistingTls | None = None
    """Files for an encrypted scheduler; empty: not encrypted."""
    trust_dashboard: Flag = False
    """Whether its dashboard, which runs code of its own in the user's page, may be shown inside
    Jupyter."""

    @model_validator(mode="after")
    def _one_way(self) -> Existing:
        if self.address and self.scheduler_file:
            raise ValueError("`address` and `scheduler_file` exclude each other; keep one")
        return self


class Network(Section):
    """Connections between client, scheduler and workers."""

    protocol: Literal["tls", "tcp", "ucx"] = "tls"
    """`tls`: encrypted, with certificates made for each cluster; `tcp`: anyone who reaches the
    port can run code as you; `ucx`: the same, but fast between GPUs (NVLink, InfiniBand), for
    environments with distributed-ucxx. UCX knows no encryption, so there is no `tls` with it."""
    fallback: Literal["tls", "tcp"] | None = None
    """Protocol used if the chosen environment has no distributed-ucxx; empty: such an environment
    is refused."""
    interface: Text | None = None
    """Interface of workers and scheduler, such as `ib0`; empty: the system chooses."""
    ports: PortRange | None = None
    """Ports that workers may listen on, such as `40000-40100`; empty: any. Not supported yet: on a
    batch system the start is refused."""


class Container(Section):
    """The container that workers run in."""

    runtime: Literal["apptainer", "singularity", "shifter", "pyxis", "pod"]
    """The command that runs the container; `pod`: Kubernetes itself."""
    image: Text
    """Path or address of the image."""
    python: Text = "python"
    """Python of the workers, inside the image. Its Dask must be that of the head."""
    args: tuple[Text, ...] = ()
    """Arguments of the runtime."""


class Environment(Section):
    """The software that head and workers run in."""

    python: PythonPath = "kernel"
    """`kernel`: the Python that the user chooses, by default that of the calling kernel; or the
    absolute path of a Python."""
    container: Container | None = None
    """Container that workers run in; empty: none."""
    prologue: tuple[Text, ...] = ()
    """Shell lines that run in the job before the workers start."""
    variables: dict[VariableName, Text] = {}
    """Environment variables of the workers. No secrets here."""


class Limits(Section):
    """Limits of what one user may start."""

    workers: PositiveOrNone = None
    """Most workers of one cluster; empty: no limit."""
    clusters: PositiveOrNone = None
    """Most clusters of one user from this profile at a time; empty: no limit."""
    gpu_hours: PositiveOrNone = None
    """Most GPU-hours of one cluster, whatever `policy.gpu_hours` says; empty: no limit."""


class IdleGpus(Section):
    """Reaction to GPUs that are held and do nothing."""

    after: DurationOrNone = None
    """Act when all GPUs of the cluster were under 2 % for this long; empty: never. Without
    readings of GPUs (no NVML), nothing happens."""
    action: Literal["warn", "shrink", "stop"] = "warn"
    """`warn`: a line in the timeline; `shrink`: keep one job; `stop`: the cluster."""


class Policy(Section):
    """Reasons to end a cluster, and replacement of its jobs."""

    idle_timeout: DurationOrNone = None
    """Stop when no task ran for this long; empty: never."""
    no_client_timeout: DurationOrNone = None
    """Stop when no client was connected for this long; empty: never."""
    max_lifetime: DurationOrNone = None
    """Stop this long after the start, whatever happens; empty: never."""
    replacements: Natural = 3
    """How many jobs that died may be replaced before the cluster stops."""
    drain_before: DurationOrNone = 120
    """Move results off workers this long before their walltime ends, where others last longer;
    empty: never."""
    at_walltime: Literal["while_used", "replace", "stop"] = "while_used"
    """`while_used`: submit a new job for one that ran out of walltime if a task ran in the last
    4 hours, or in the walltime if that is shorter; `replace`: always; `stop`: never."""
    gpu_hours: PositiveOrNone = None
    """Budget: the timeline warns at 80 %, and the cluster stops at 100 % of these GPU-hours
    (GPUs held times hours, also idle ones); empty: no budget."""
    idle_gpus: IdleGpus = IdleGpus.model_construct()
    """When idle GPUs are reported or released."""
    unproved_after: Duration = 600
    """A cluster that stops waits this long for proof that its jobs have ended, and as much
    longer as the batch system does not answer. Then it ends, its record names the jobs without
    proof, and later looks at it cancel them again."""


class Access(Section):
    """The way to the site from outside."""

    login_hops: tuple[LoginHop, ...] = ()
    """Hosts to go through in this order, such as `user@login.example.org:8022`. Not used yet."""
