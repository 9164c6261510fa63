"""Dask's own YAML files make profiles, as dask-jobqueue and its JupyterLab extension read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.core.errors import ProfileNotFound
from jupyter_gpucluster.core.job import JobShape
from jupyter_gpucluster.profiles import Profile, apply_options, find_profile, load_profiles
from jupyter_gpucluster.profiles.jobqueue_options import LOGIN, parse_size, usual_processes
from jupyter_gpucluster.profiles.jobqueue_yaml import dask_directories, read_dask_config
from tests.profiles.conftest import Site

USUAL = 120
"""Seconds before the walltime at which jobs are drained where nothing else is said."""

SUMMIT = """
    jobqueue:
      lsf:
        cores: 128
        processes: 8
        memory: 500 GB
        job-extra: ["-nnodes 1"]
        interface: ib0
        header-skip: ["-R", "-n ", "-M"]

    labextension:
      factory:
        module: "dask_jobqueue"
        class: "LSFCluster"
        args: []
        kwargs:
          project: abc123
"""


def dask(text: str, name: str = "jobqueue.yaml") -> Path:
    """Write a file of the user's Dask configuration."""
    file = Path(os.environ["DASK_CONFIG"]) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text))
    return file


def made(name: str) -> Profile:
    return find_profile(name).profile


@pytest.fixture(autouse=True)
def no_machine_wide_files(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_ROOT_CONFIG", str(site.root / "etc"))


def test_a_section_is_a_profile_of_its_name(site: Site) -> None:
    file = dask(
        """
        jobqueue:
          slurm:
            cores: 24
            processes: 6
            memory: 96 GiB
            queue: gpu
            account: phys
            walltime: "02:00:00"
            interface: ib0
            local-directory: $TMPDIR
            worker-extra-args: ["--lifetime 25m", "--preload"]
            job-extra-directives: ["--qos=low", "-C {a,b}"]
            job-script-prologue: ["module load cuda", "echo {hello}"]
            python: /opt/conda/bin/python
            scheduler-options: {interface: eth1, dashboard_address: ":9000"}
        """
    )
    [loaded] = [p for p in load_profiles().profiles.values() if p.name == "slurm"]
    assert loaded.files == (str(file),)
    profile = apply_options(loaded.profile, {})
    assert profile.backend == "slurm"
    assert profile.title == "Slurm as in Dask's configuration (slurm)"
    assert (profile.job.cpus, profile.job.memory) == (24, 96 * 2**30)
    assert (profile.job.queue, profile.job.account, profile.job.walltime) == ("gpu", "phys", 7200)
    assert profile.job.directives == ("--qos=low", "-C {a,b}")
    assert (profile.workers.per_job, profile.workers.threads) == (6, 4)
    assert profile.workers.memory_limit == 16 * 2**30
    assert profile.workers.local_directory == "$TMPDIR"
    assert profile.workers.extra_args == ("--preload",)
    assert profile.policy.drain_before == 7200 - 25 * 60
    assert profile.network.interface == "ib0"
    assert profile.head.interface == "eth1"
    assert profile.environment.prologue == ("module load cuda", "echo {hello}")
    assert profile.environment.python == "/opt/conda/bin/python"
    assert load_profiles().problems == []


@pytest.mark.parametrize(
    "section, arguments, seconds, problems",
    [
        ("slurm: {walltime: '01:00:00', worker-extra-args: [--lifetime, 51m,"
         " --lifetime-stagger=4m]}", (), 540, 0),
        ("slurm: {walltime: '01:00:00', worker-extra-args: ['--lifetime=55min --nworkers 2']}",
         ("--nworkers", "2"), 300, 0),
        # dask-cuda's workers would not start with it.
        ("slurm: {worker-command: dask_cuda.cli, worker-extra-args: [--lifetime 25m"
         " --lifetime-restart]}", (), 300, 0),
        # Such workers start again, for which they need no other job.
        ("slurm: {worker-extra-args: [--lifetime 5m --lifetime-restart]}",
         ("--lifetime", "5m", "--lifetime-restart"), USUAL, 0),
        ("slurm: {walltime: '00:10:00', worker-extra-args: [--lifetime 1h]}", (), USUAL, 1),
        ("htcondor: {disk: 1GB, worker-extra-args: [--lifetime 1h]}", (), USUAL, 1),
    ],
)  # fmt: skip
def test_jobs_are_drained_when_dask_s_workers_would_have_ended_by_themselves(
    site: Site, section: str, arguments: tuple[str, ...], seconds: int, problems: int
) -> None:
    dask(f"jobqueue:\n  {section.replace('{', '{cores: 2, memory: 4GB, ', 1)}\n")
    profile = made(section.partition(":")[0])
    assert profile.workers.extra_args == arguments
    assert profile.policy.drain_before == seconds
    assert len(load_profiles().problems) == problems


@pytest.mark.parametrize("value, by", [("false", "file"), ("true", "auto"), ("null", "auto")])
def test_lsf_s_script_goes_by_its_path_where_dask_s_would(site: Site, value: str, by: str) -> None:
    dask(f"jobqueue: {{lsf: {{cores: 2, memory: 4GB, queue: x, use-stdin: {value}}}}}")
    assert made("lsf").job.submit_by == by
    assert load_profiles().problems == []


def test_the_user_may_set_queue_account_and_walltime_at_start(site: Site) -> None:
    dask("jobqueue: {slurm: {cores: 2, account: phys}}")
    profile = made("slurm")
    assert list(profile.options) == ["account", "queue", "walltime"]
    assert apply_options(profile, {"account": "chem"}).job.account == "chem"
    assert apply_options(profile, {}).job.account == "phys"


def test_summits_file_works_as_it_stands(site: Site) -> None:
    dask(SUMMIT, "summit.yaml")
    found = load_profiles()
    profile = found.profiles["lsf"].profile
    assert list(found.profiles) == ["lsf", "local"]
    assert profile.default
    assert profile.job.account == "abc123"
    assert (profile.job.cpus, profile.job.memory) == (128, 500 * 10**9)
    assert profile.job.directives == ("-nnodes 1",)
    assert profile.job.skip_directives == ("-R", "-n ", "-M")
    assert (profile.workers.per_job, profile.workers.threads) == (8, 16)
    assert profile.workers.memory_limit == 62_500_000_000
    assert profile.network.interface == "ib0"
    assert found.problems == []


def test_sections_that_set_nothing_of_their_own_are_no_profiles(site: Site) -> None:
    # Found without importing it, since its import takes over SIGINT.
    spec = find_spec("dask_jobqueue")
    assert spec is not None
    assert spec.origin is not None
    files = {
        "defaults.yaml": Path(spec.origin).with_name("jobqueue.yaml").read_text(),
        "jobqueue.yaml": "# jobqueue:\n#   slurm:\n#     queue: regular\n",
        "labextension.yaml": """
            labextension:
              factory: {module: dask.distributed, class: LocalCluster, args: [], kwargs: {}}
              default: {workers: null, adapt: null}
              initial: []
            """,
        "distributed.yaml": "distributed: {worker: {memory: {target: 0.6}}}",
        "ours.yaml": "labextension: {factory: {module: jupyter_gpucluster, class: GPUCluster}}",
    }
    for name, text in files.items():
        file = dask(text, name)
        found = load_profiles()
        assert (list(found.profiles), found.problems) == (["local"], []), name
        file.unlink()


def test_a_custom_section_needs_a_file_of_two_lines(site: Site) -> None:
    dask("jobqueue: {mysite: {cores: 8, memory: 16GB, queue: short, processes: 1}}")
    assert "mysite" not in load_profiles().profiles
    with pytest.raises(ProfileNotFound, match="does not name a batch system") as caught:
        find_profile("mysite")
    assert "`dask_config: mysite`" in caught.value.hint
    own = site.write("user", "here.yaml", "backend: slurm\ndask_config: mysite\n")
    profile = made("here")
    assert profile.backend == "slurm"
    assert profile.title == "Slurm as in Dask's configuration (mysite)"
    assert (profile.job.queue, profile.job.cpus, profile.job.walltime) == ("short", 8, 1800)
    assert find_profile("here").files[-1] == own
    assert load_profiles().problems == []


def test_a_section_that_is_not_there_is_told_with_its_place(site: Site) -> None:
    site.write("user", "here.yaml", "title: Here\nbackend: slurm\ndask_config: mysiet\n")
    [problem] = load_profiles().problems
    assert (problem.line, problem.column) == (3, 14)
    assert problem.message == "`dask_config`: Dask's configuration has no section jobqueue.mysiet"
    assert made("here").title == "Here"


def test_profile_files_override_what_dasks_files_say(site: Site) -> None:
    dask("jobqueue: {slurm: {cores: 8, queue: short}}")
    site.write("system", "slurm.yaml", "title: Ours\njob: {queue: long}\nlimits: {workers: 4}\n")
    profile = made("slurm")
    assert (profile.title, profile.job.queue, profile.job.cpus) == ("Ours", "long", 8)
    assert profile.limits.workers == 4


def test_a_whole_profile_of_the_same_name_stands_alone(site: Site) -> None:
    dask("jobqueue: {slurm: {cores: 8, queue: short, job-extra-directives: [--x]}}")
    site.write("system", "slurm.yaml", "title: Ours\nbackend: slurm\nlocked: [job.directives]\n")
    profile = made("slurm")
    assert (profile.job.queue, profile.job.cpus, profile.job.directives) == ("", None, ())


def test_later_files_override_earlier_ones_key_by_key(
    site: Site, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    root = home / "etc"
    (root).mkdir()
    (root / "a.yaml").write_text("jobqueue: {slurm: {cores: 8, queue: short, account: x}}")
    (root / "b.yml").write_text("jobqueue: {slurm: {queue: long}}")
    monkeypatch.setenv("DASK_ROOT_CONFIG", str(root))
    dask("jobqueue: {slurm: {account: null, cores: 4}}")
    profile = made("slurm")
    assert (profile.job.cpus, profile.job.queue, profile.job.account) == (4, "long", "")


def test_directories_are_dasks(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import dask.config as c; print('\\n'.join(map(str, c.paths)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [str(path) for path in dask_directories()] == told.stdout.split()
    monkeypatch.delenv("DASK_CONFIG")
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [str(path) for path in dask_directories()] == told.stdout.split()


def test_dasks_configuration_may_be_one_file(
    site: Site, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    (home / "mine.yaml").write_text("jobqueue: {pbs: {cores: 8}}")
    monkeypatch.setenv("DASK_CONFIG", str(home / "mine.yaml"))
    assert made("pbs").job.cpus == 8


def test_a_bad_file_is_a_problem_and_hides_nothing(site: Site) -> None:
    dask("jobqueue: [", "bad.yaml")
    dask("jobqueue: {slurm: {cores: 8}}")
    found = load_profiles()
    assert "slurm" in found.profiles
    [problem] = found.problems
    assert Path(problem.file).name == "bad.yaml"
    assert problem.severity == "warning"


@pytest.mark.parametrize(
    "section,words",
    [
        ("cores: many", "`cores` of jobqueue.slurm 'many' is not a whole number"),
        ("memory: lots", "`memory` of jobqueue.slurm 'lots' is not an amount of memory"),
        ("walltime: soon", "`walltime` of jobqueue.slurm 'soon' is not a length of time"),
        ("python: srun python", "`python` of jobqueue.slurm is not the path of a Python"),
        ("shebang: '#!/bin/zsh'", "`shebang` of jobqueue.slurm names 'zsh'; the job script"),
        ("tyop: 1", "`tyop` of jobqueue.slurm is not carried over"),
    ],
)
def test_what_cannot_be_carried_over_is_told(site: Site, section: str, words: str) -> None:
    dask(f"jobqueue:\n  slurm:\n    queue: x\n    {section}\n")
    found = load_profiles()
    assert found.profiles["slurm"].profile.job.queue == "x"
    [problem] = found.problems
    assert problem.message.startswith(words)
    assert (problem.line, problem.column, problem.severity) == (4, 5, "warning")
    assert problem.profile == "slurm"


@pytest.mark.parametrize(
    "shebang, lines",
    [
        ("#!/bin/bash -l", (LOGIN,)),
        ("#!/usr/bin/env -S bash --login", (LOGIN,)),
        ("#!/usr/bin/env bash", ()),
        ("#!/bin/sh", ()),
    ],
)
def test_a_login_shell_of_the_shebang_is_honoured(
    site: Site, shebang: str, lines: tuple[str, ...]
) -> None:
    dask(f"jobqueue: {{slurm: {{cores: 1, shebang: '{shebang}', env-extra: [module load x]}}}}")
    found = load_profiles()
    assert found.profiles["slurm"].profile.environment.prologue == (*lines, "module load x")
    assert not any("shebang" in problem.message for problem in found.problems)


def test_the_new_name_wins_over_the_old_one_and_project_is_also_a_new_one(site: Site) -> None:
    dask("jobqueue: {pbs: {cores: 1, project: p}, sge: {cores: 1, project: q}}")
    assert (made("pbs").job.account, made("sge").job.account) == ("p", "q")
    dask("jobqueue: {slurm: {cores: 1, job-extra: [--old], job_extra_directives: [--new]}}")
    assert made("slurm").job.directives == ("--new",)
    dask("jobqueue: {slurm: {cores: 1, job-extra: [--old], job-extra-directives: []}}")
    assert made("slurm").job.directives == ("--old",)


def test_gpu_workers_are_those_of_dask_cuda(site: Site) -> None:
    dask(
        """
        jobqueue:
          slurm:
            cores: 32
            processes: 4
            memory: 128 GB
            worker-command: dask_cuda.cli
            job-extra-directives: ["--gres=gpu:4"]
        """
    )
    profile = made("slurm")
    assert (profile.job.gpus, profile.job.gpu_request) == (4, "none")
    assert (profile.workers.per_job, profile.workers.threads) == (4, 8)
    assert profile.job.directives == ("--gres=gpu:4",)


@pytest.mark.parametrize(
    "section,directives,skips",
    [
        ("slurm: {cores: 2, memory: 60GB, job-mem: '0'}", ["--mem=0"], []),
        ("pbs: {cores: 2, resource-spec: 'select=1:ngpus=1'}", ["-l select=1:ngpus=1"],
         ["-l select="]),
        ("moab: {cores: 2, resource-spec: pmem=96G}", ["-l pmem=96G"], ["-l nodes=", "-l mem="]),
        ("sge: {cores: 2, resource-spec: m_mem_free=20G}", ["-l m_mem_free=20G"], []),
        ("lsf: {cores: 2, memory: 25GB, lsf-units: mb}", ["-M 25000"], ["-M "]),
        ("lsf: {cores: 2, memory: 25GB, lsf-units: mb, job-directives-skip: ['#BSUB -M', -R],"
         " job-extra-directives: [-R span]}", ["-R span"], ["-M ", "#BSUB -M", "-R"]),
        ("slurm: {cores: 2, memory: 60GB, job-mem: '0', job-directives-skip: [mem]}", [], ["mem"]),
        ("oar: {cores: 2, resource-spec: nodes=1/core=2}", ["-l nodes=1/core=2,walltime=00:30:00"],
         ["-l /nodes="]),
        ("oar: {cores: 2, memory: 8 GiB, memory-per-core-property-name: mem}",
         ["-p mem>=4096"], []),
        ("oar: {cores: 2, memory: 8 GiB, memory-per-core-property-name: mem,"
         " job-extra-directives: [-t besteffort, -p 'gpu=1']}",
         ["-t besteffort", "-p 'gpu=1'", "-p mem>=4096"], []),
        # Of several the last one counts, also where it is there twice.
        ("oar: {cores: 2, memory: 8 GiB, memory-per-core-property-name: mem,"
         " job-extra-directives: [-p a=1, -p b=1, -p b=1]}", ["-p b=1", "-p mem>=4096"], []),
        ("htcondor: {cores: 2, disk: 1 GB, job-extra-directives: {universe: docker}}",
         ["RequestDisk = 976562", "universe = docker"], []),
    ],
)  # fmt: skip
def test_each_systems_own_options_become_directives(
    site: Site, section: str, directives: list[str], skips: list[str]
) -> None:
    dask(f"jobqueue:\n  {section}\n")
    profile = made(section.partition(":")[0])
    assert profile.job.directives == tuple(directives)
    assert profile.job.skip_directives == tuple(skips)
    assert load_profiles().problems == []


@pytest.mark.parametrize("kind,backend", [("SLURMCluster", "slurm"), ("PBSCluster", "pbs")])
def test_a_factory_may_name_the_class_of_a_custom_section(
    site: Site, kind: str, backend: str
) -> None:
    kwargs = "{cores: 8, config_name: mysite}"
    factory = f"{{module: dask_jobqueue, class: {kind}, kwargs: {kwargs}}}"
    dask(f"jobqueue: {{mysite: {{queue: long}}}}\nlabextension: {{factory: {factory}}}")
    profile = made("mysite")
    assert (profile.backend, profile.job.queue, profile.job.cpus) == (backend, "long", 8)


def test_a_factory_of_local_workers_is_a_profile_too(site: Site) -> None:
    dask(
        """
        labextension:
          factory:
            module: dask.distributed
            class: LocalCluster
            kwargs: {n_workers: 4, threads_per_worker: 2, memory_limit: 4GB}
        """
    )
    profile = made("labextension")
    assert profile.backend == "local"
    assert (profile.workers.threads, profile.workers.memory_limit) == (2, 4 * 10**9)


def test_a_factory_without_a_backend_is_told(site: Site) -> None:
    dask("labextension: {factory: {module: dask_yarn, class: YarnCluster}}")
    [problem] = load_profiles().problems
    assert "names 'YarnCluster'" in problem.message


def test_an_unknown_name_is_compared_with_dasks_sections_too(site: Site) -> None:
    dask("jobqueue: {htcondor: {cores: 1, disk: 1GB}}")
    with pytest.raises(ProfileNotFound) as caught:
        find_profile("htcondro")
    assert "did you mean `htcondor`?" in caught.value.message
    assert caught.value.hint == "Profiles: htcondor, local; setup writes more."


@pytest.mark.parametrize(
    "text,backend,seconds",
    [
        ("00:30:00", "slurm", 1800),
        ("00:30", "slurm", 30),
        ("30", "slurm", 1800),
        ("1-12", "slurm", 36 * 3600),
        ("1-12:30", "slurm", 36 * 3600 + 1800),
        ("00:30", "lsf", 1800),
        ("60", "lsf", 3600),
        ("72:00:00", "oar", 72 * 3600),
        ("2", "oar", 7200),
        ("1500000", "sge", 1500000),
        ("1:2:3:4", "slurm", None),
        ("1h", "slurm", None),
        ("", "slurm", None),
    ],
)
def test_walltimes_mean_what_each_system_says(text: str, backend: str, seconds: int | None) -> None:
    assert find_backend(backend).syntax.seconds(text) == seconds


def test_sizes_and_processes_are_dasks() -> None:
    texts = ["16GB", "16 GiB", "5kB", "1.5 MB", "100", "1e3", "4G", "4Gi", "10 gb", ".5GB", "x"]
    code = (
        "import sys\n"
        "from dask.utils import parse_bytes\n"
        "from distributed.deploy.utils import nprocesses_nthreads\n"
        "for text in sys.argv[1:]:\n"
        "    try: print(parse_bytes(text))\n"
        "    except ValueError: print(None)\n"
        "print([nprocesses_nthreads(n)[0] for n in range(1, 130)])\n"
    )
    command = [sys.executable, "-c", code, *texts]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [parse_size(text) for text in texts]
    assert [str(size) for text, size in zip(texts, ours, strict=True) if text != "1e3"] == [
        line for text, line in zip(texts, told, strict=False) if text != "1e3"
    ]
    assert str([usual_processes(n) for n in range(1, 130)]) == told[-1]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    "cores memory processes queue account project walltime python interface job-extra extra"
    " job-extra-directives worker-extra-args worker-command resource-spec job-mem lsf-units disk"
    " memory-per-core-property-name scheduler-options use-stdin local-directory".split()
)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["slurm", "pbs", "lsf", "sge", "oar", "moab", "htcondor", "x"]),
        st.dictionaries(KEYS, VALUES, max_size=6),
        max_size=3,
    )
)
def test_no_content_makes_the_list_of_profiles_fail(sections: dict[str, object]) -> None:
    file = dask("")
    file.write_text(json.dumps({"jobqueue": sections}))
    found = load_profiles()
    assert "local" in found.profiles
    assert all(problem.message for problem in found.problems)
    assert len(found.problems) >= len(read_dask_config().problems)


def test_extra_directives_count_as_given_but_for_a_job_s_name(site: Site) -> None:
    dask(
        """
        jobqueue:
          slurm:
            cores: 8
            queue: normal
            job-extra-directives: ["-p gpu", "-n 4", "-J mine", "#SBATCH -C x", "--gres=gpu:1"]
        """
    )
    profile, problems = find_profile("slurm").profile, load_profiles().problems
    assert profile.job.directives == ("-p gpu", "-n 4", "--gres=gpu:1")
    assert profile.dask_config == "slurm"
    assert [p.message for p in problems] == [
        "`job-extra-directives` of jobqueue.slurm has '#SBATCH -C x', which is a comment",
        "`job-extra-directives` of jobqueue.slurm names the job by '-J mine', which is ours",
    ]
    shape = JobShape(cpus=8, queue="normal", directives=profile.job.directives)
    lines = directives_of(
        find_backend("slurm"),
        shape,
        find_backend("slurm").directives(shape, "m", "/o"),
        as_given=True,
    )
    assert lines[-3:] == ["#SBATCH -p gpu", "#SBATCH -n 4", "#SBATCH --gres=gpu:1"]
    assert "#SBATCH -p normal" not in lines
