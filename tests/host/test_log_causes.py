"""Jobs that end before their worker connects: what their logs say, and what we make of it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.head.reconcile.observe import Watch
from jupyter_gpucluster.node import start_worker

MODULE = f"{start_worker.__file__} -m distributed.cli.dask_worker"
WORKER = f"{sys.executable} {MODULE} --no-dashboard --nthreads 1"


def told(directory: Path, script: str, log: str = "gpc-abc123-1_0.log") -> str:
    """Run the end of a job script, and return what is made of its log."""
    with (directory / log).open("wb") as stream:
        subprocess.run(
            ["bash", "-c", script], stdout=stream, stderr=stream, timeout=60, check=False
        )
    watch = Watch.__new__(Watch)
    watch.logs = directory
    return watch.first_error("gpc-abc123-1_0")


@pytest.mark.parametrize(
    "script,cause,said",
    [
        ("module load cuda", "does not know modules", "module: command not found"),
        ("nosuchloader x", "has no such command", "nosuchloader: command not found"),
        ("dash -c 'true; exec nosuchloader'", "has no such command", "nosuchloader: not found"),
        (f"{sys.executable} -I -S {MODULE}", "has no Dask",
         "No module named 'distributed'"),
        (f"{sys.executable} /gone/jobs/workerstart.py -m distributed.cli.dask_worker",
         "bind it into the container", "can't open file"),
        (f"/opt/gone/bin/python3 {MODULE}", "cannot run the cluster's Python",
         "/opt/gone/bin/python3: No such file or directory"),
        (f"PYTHONHOME=/nowhere {sys.executable} -m distributed", "PYTHONHOME",
         "No module named 'encodings'"),
        ("echo x >/dev/full", "file system of the node is full", ""),
        ("exec >>/nowhere/gpucluster/logs/gpc-abc123-1_0.log 2>&1", "does not see the cluster's",
         "No such file or directory"),
        ("echo 'write error: Disk quota exceeded' >&2", "quota is used up", ""),
        ("echo \"ModuleCmd_Load.c: ERROR: Unable to locate a modulefile for 'x'\" >&2",
         "no module of that name", ""),
        ("ssh -oBatchMode=yes -p 1 127.0.0.1 true", "does not reach the others by ssh", ""),
        ("echo 'ann@n2: Permission denied (publickey,password).' >&2", "without a password",
         "Permission denied (publickey"),
        ("echo 'Host key verification failed.' >&2", "accept-new", ""),
        ("echo \"CondaError: Run 'conda init' before 'conda activate'\" >&2", "profile.d/conda.sh",
         "Run 'conda init'"),
        ("echo 'EnvironmentNameNotFound: Could not find conda environment: x' >&2",
         "no conda environment", ""),
        ("f=$(mktemp); printf '\\177ELF\\2\\1\\1garbage' >$f; chmod +x $f; $f; rm $f",
         "another kind of processor", ""),
        ("echo \"python: /lib64/libc.so.6: version \\`GLIBC_2.38' not found\" >&2",
         "newer system", ""),
        ("echo 'FATAL:   could not open image /x.sif: no such file' >&2", "that the image", ""),
        ("echo 'slurmstepd: error: pyxis: child 7 failed with error code: 1' >&2",
         "check that the image", ""),
        ("echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.' >&2",
         "job.memory", ""),
        ("echo '=>> PBS: job killed: mem 2101304kb exceeded limit 1048576kb' >&2", "job.memory",
         ""),
        ("echo '=>> PBS: job killed: vmem 3145728kb exceeded limit 2097152kb' >&2", "job.memory",
         ""),
        ("echo 'slurmstepd: error: Exceeded virtual memory limit at some point.' >&2",
         "job.memory", ""),
        ("echo 'TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.' >&2",
         "job.memory", ""),
        (f"{sys.executable} -c 'bytearray(1 << 62)'", "job.memory", "MemoryError"),
        ("echo 'numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8. TiB' >&2",
         "job.memory", "Unable to allocate"),
        ("echo 'srun: error: Unable to create step for job 7: More processors requested' >&2",
         "ranks_per_node", ""),
        ("echo 'ssl.SSLCertVerificationError: certificate verify failed: not yet valid' >&2",
         "clocks", "certificate verify failed"),
    ],
)  # fmt: skip
def test_the_cause_is_named_with_the_line_that_shows_it(
    script: str, cause: str, said: str, tmp_path: Path
) -> None:
    words = told(tmp_path, script)
    assert cause in words
    assert said in words


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments,cause",
    [
        ("tcp://127.0.0.1:9 --death-timeout 2 --interface lo", "did not reach the scheduler"),
        ("tcp://127.0.0.1:9 --interface hsn0", "no network interface of that name"),
        ("tcp://127.0.0.1:9 --nosuchoption", "workers.extra_args"),
        ("tcp://127.0.0.1:9 --local-directory /proc/x", "correct workers.local_directory"),
    ],
)
def test_a_worker_s_own_words_are_understood(arguments: str, cause: str, tmp_path: Path) -> None:
    words = told(tmp_path, f"cd {shlex.quote(str(tmp_path))}; {WORKER} {arguments}")
    assert cause in words


def test_where_the_job_s_log_was_never_opened_the_system_s_file_tells(tmp_path: Path) -> None:
    words = told(tmp_path, "nosuchloader", log="gpc-abc123-1.out")
    assert "has no such command" in words
    assert "has no such command" in told(tmp_path, "nosuchloader", log="gpc-abc123-1.0.out")


def test_what_the_system_says_of_a_job_s_end_counts_beside_its_log(tmp_path: Path) -> None:
    (tmp_path / "gpc-abc123-1_0.log").write_text("distributed.worker - INFO - Registered\n")
    said = "echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.'"
    assert "more memory" in told(tmp_path, said, log="gpc-abc123-1.0.out")
    (tmp_path / "gpc-abc123-1.0.out").unlink()
    assert "more memory" in told(tmp_path, said, log="gpc-abc123-1.out.0")


def test_lines_that_may_be_of_another_job_do_not_explain_this_one(tmp_path: Path) -> None:
    (tmp_path / "gpc-abc123-1_0.log").write_text("distributed.worker - INFO - Registered\n")
    assert told(tmp_path, "echo 'FirstError: x'", log="gpc-abc123-1.out") == ""


def test_a_log_that_speaks_for_itself_is_quoted(tmp_path: Path) -> None:
    assert told(tmp_path, "echo 'MyError: the moon is wrong'") == "MyError: the moon is wrong"
    assert told(tmp_path, "echo all is well") == ""


def test_the_last_of_several_errors_counts(tmp_path: Path) -> None:
    words = told(tmp_path, "for n in $(seq 2000); do echo OldError: $n; done; echo NewError: x")
    assert words == "NewError: x"


SCRIPTS = {
    "slurm": "/var/spool/slurmd/job00041/slurm_script: line 14: ",
    "pbs": "/var/spool/pbs/mom_priv/jobs/41.login1.SC: line 14: ",
    "torque": "/var/spool/torque/mom_priv/jobs/41.login1.SC: line 14: ",
    "sge": "/var/spool/gridengine/execd/n1/job_scripts/41: line 14: ",
    "lsf": "/home/ann/.lsbatch/1764320000.41.shell: line 14: ",
    "htcondor": "/var/lib/condor/execute/dir_41/condor_exec.exe: line 14: ",
    "oar": "/home/ann/gpucluster/jobs/gpc-abc123-1.sh: line 14: ",
    "ssh": "bash: line 1: ",
}
"""Prefixes of the shell's messages, by each system's way to run a script."""
BEHIND = {
    "slurm": "slurmstepd: error: *** JOB 41 ON n1 CANCELLED AT 2026-11-28T00:48:01 ***",
    "lsf": "Exited with exit code 127.\n\nResource usage summary:\n\n    CPU time : 0.10 sec.",
    "ssh": "Connection to n1 closed.",
}


@pytest.mark.parametrize("system", SCRIPTS)
@pytest.mark.parametrize(
    "said,cause",
    [
        ("spack: command not found", "has no such command"),
        ("module: command not found", "does not know modules"),
        ("/opt/env/bin/python3.11: No such file or directory", "cannot run the cluster's Python"),
        ("/opt/env/bin/python: Permission denied", "cannot run the cluster's Python"),
        ("/home/ann/logs/gpc-abc123-1_0.log: No such file or directory", "does not see the"),
    ],
)
def test_the_cause_is_found_among_the_words_of_each_system(
    system: str, said: str, cause: str, tmp_path: Path
) -> None:
    log = f"{SCRIPTS[system]}{said}\n{BEHIND.get(system, '')}\n"
    words = told(tmp_path, f"echo {shlex.quote(log)}", log="gpc-abc123-1.out")
    assert cause in words
    assert said in words


@pytest.mark.parametrize(
    "line",
    [
        "=>> PBS: job killed: walltime 75 exceeded limit 60",
        "MemoryError: std::bad_alloc: CUDA error at: cuda_memory_resource.hpp",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8 bytes",
    ],
)
def test_other_limits_and_the_memory_of_a_gpu_are_not_the_job_s_memory(
    line: str, tmp_path: Path
) -> None:
    assert "job.memory" not in told(tmp_path, f"echo {shlex.quote(line)}")
