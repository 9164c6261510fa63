"""The profiles that are shipped for public sites: offered where they belong, each renders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jupyter_gpucluster.profiles import find_profile, load_profiles
from jupyter_gpucluster.profiles.search import BUILT_IN
from tests.profiles.conftest import Site, script_of

SITES = sorted(path.stem for path in BUILT_IN.glob("*.yaml") if path.stem != "local")

EXPECTED = {
    "alcf-polaris": ["#PBS -l select=1", "#PBS -q debug-scaling", "#PBS -A value",
                     "#PBS -l walltime=00:10:00"],
    "alcf-thetagpu": ["#COBALT -n 1", "#COBALT -q full-node", "#COBALT -A value",
                      "#COBALT -t 00:30:00"],
    "alcf-thetagpu-single": ["#COBALT -n 1", "#COBALT -q single-gpu"],
    "alliance-cedar": ["#SBATCH -A value", "#SBATCH --cpus-per-task=8"],
    "berkeley-savio-lowprio": ["#SBATCH -p savio2_bigmem", "#SBATCH --cpus-per-task=24"],
    "cern-lxplus": ["#CONDOR RequestCpus = 1", "#CONDOR RequestMemory = 2861"],
    "chpc-lengau-gpu": ["#PBS -l select=1:ncpus=10:mem=40GB:ngpus=1", "#PBS -q gpu_1"],
    "chtc": ["#CONDOR RequestCpus = 1", "#CONDOR RequestMemory = 953"],
    "cineca-leonardo-booster": ["#SBATCH --gres=gpu:4", "#SBATCH -p boost_usr_prod"],
    "deepops-k8s": ["#KUBERNETES metadata.namespace = rapids",
                    "#KUBERNETES spec.restartPolicy = Never",
                    r"#KUBERNETES spec.containers[0].resources.limits.nvidia\.com/gpu = 1"],
    "dkrz-mistral": ["#SBATCH -p shared", "#SBATCH --cpus-per-task=12", "#SBATCH -t 00:30:00"],
    "idris-jean-zay-a100": ["#SBATCH --gres=gpu:1", "#SBATCH -A value@a100",
                            "#SBATCH --cpus-per-task=8"],
    "ifremer-datarmor": ["#PBS -l select=1:ncpus=28:mem=120GB", "#PBS -q mpi_1"],
    "in2p3-sge": ["#$ -P value", "#$ -l h_rt=02:00:00"],
    "inria-nef": ["#OAR -q besteffort", "#OAR -l /nodes=1/core=4,walltime=01:00:00"],
    "janelia": ["#BSUB -n 11", '#BSUB -R "span[hosts=1]"', '#BSUB -P "value"', "#BSUB -W 01:00",
                "#BSUB -M 165000000"],
    "jsc-jureca": ["#SBATCH --gres=gpu:4", "#SBATCH -p gpus"],
    "jsc-juwels-gpus": ["#SBATCH --gres=gpu:4", "#SBATCH -p gpus"],
    "kiel-nesh": ["#PBS -q clmedium"],
    "ncar-casper-v100": ["#PBS -l select=1:ncpus=1:mem=10GB:ngpus=1", "#PBS -l gpu_type=v100",
                         "#PBS -q casper"],
    "ncar-derecho": ["#PBS -l select=1:ncpus=1:mem=4096MB", "#PBS -q develop"],
    "ncar-izumi": ["#PBS -l nodes=1:ppn=48", "#PBS -q medium", "#PBS -l walltime=08:00:00"],
    "nersc-perlmutter-gpu": ["#SBATCH --gpus-per-node=4", "#SBATCH -A value_g"],
    "olcf-andes": ["#SBATCH -p batch", "#SBATCH -A value", "#SBATCH -t 01:00:00"],
    "olcf-frontier": ["#SBATCH -p batch", "#SBATCH -A value", "#SBATCH -t 02:00:00"],
    "olcf-summit": ["#BSUB -nnodes 1", '#BSUB -P "value"', "#BSUB -W 01:00"],
    "pawsey-ella": ["#SBATCH --gres=gpu:1", "#SBATCH -A value-gpu", "#SBATCH -p gpu"],
    "sdsc-comet": ["#SBATCH -p compute", "#SBATCH --cpus-per-task=24"],
    "surf-cartesius": ["#SBATCH -p normal", "#SBATCH --cpus-per-task=24"],
    "tacc-wrangler": ["#SBATCH -p normal", "#SBATCH -t 02:00:00"],
}  # fmt: skip
"""Requests of each script, as in its source."""
ADDED = {
    "alcf-polaris": ["-l filesystems=home:grand:eagle"],
    "alliance-cedar": ["--mem-per-cpu=1024M"],
    "berkeley-savio-lowprio": ["--qos=savio_lowprio"],
    "cern-lxplus": ['MY.JobFlavour = "longlunch"'],
    "chpc-lengau-gpu": ["-P value"],
    "cineca-leonardo-booster": ["--qos=boost_qos_dbg", "--mem=0", "--exclusive"],
    "deepops-k8s": [
        "spec.containers[0].image = registry.local/dask-rapids:latest",
        "spec.volumes[0].persistentVolumeClaim.claimName = value",
    ],
    "idris-jean-zay-a100": ["-C a100", "--hint=nomultithread"],
    "ncar-derecho": ["-l job_priority=economy", "-r n"],
    "nersc-perlmutter-gpu": ["-C gpu", "--qos=regular"],
    "olcf-summit": ["-alloc_flags gpumps"],
    "surf-cartesius": ["--mem=60GB"],
}
"""The profile's own additional directives."""


def test_there_are_many_and_of_every_system() -> None:
    assert len(SITES) >= 15
    systems = {find_profile(name).profile.backend for name in SITES}
    assert systems >= set("slurm pbs torque lsf sge oar htcondor cobalt kubernetes".split())
    assert sum("(historic)" in find_profile(name).profile.title for name in SITES) >= 8


@pytest.mark.parametrize("name", SITES)
def test_each_renders_what_its_site_asks_for(name: str) -> None:
    head = [line for line in script_of(name).splitlines() if line.startswith("#")][1:]
    assert [line for line in EXPECTED[name] if line not in head] == []
    bare = [line.partition(" ")[2] for line in head]
    assert [line for line in ADDED.get(name, []) if line not in bare] == []
    assert "{" not in "".join(head)


@pytest.mark.parametrize("name", SITES)
def test_each_names_its_source_its_hosts_and_its_place(name: str) -> None:
    text = (BUILT_IN / f"{name}.yaml").read_text()
    assert text.startswith(("# Source: ", "# Sources: "))
    # What decides whether it is offered is read without a parser.
    profile = find_profile(name).profile
    [line] = re.findall(r"^hosts: \[(.+)\]$", text, re.MULTILINE)
    assert tuple(re.findall(r'"([^"]+)"', line)) == profile.hosts
    assert profile.hosts
    assert all("." in host for host in profile.hosts)
    assert profile.summary
    assert ("(historic)" in profile.title) == ("retired" in profile.summary or name in OLD)


def test_the_gallery_lists_them_all_with_their_titles() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sites.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| ", page, re.MULTILINE)
    assert dict(rows) == {name: find_profile(name).profile.title for name in SITES}


OLD = {"alliance-cedar", "in2p3-sge", "jsc-jureca", "kiel-nesh"}
"""Historic, although their sites go on with other machines or another system."""


def test_none_has_anything_to_warn_about(site: Site) -> None:
    assert load_profiles(all_sites=True).problems == []
    assert set(load_profiles(all_sites=True).profiles) == {*SITES, "local"}


@pytest.mark.parametrize(
    "host,offered",
    [
        ("laptop", []),
        ("login1.example.org", []),
        # Every site has a login1: a short name must be confirmed by the full one.
        ("login1", []),
        ("login4.summit.olcf.ornl.gov", ["olcf-summit"]),
        ("thetagpusn1.tmi.alcf.anl.gov", ["alcf-thetagpu", "alcf-thetagpu-single"]),
    ],
)
def test_a_site_is_offered_on_its_hosts_only(
    site: Site, monkeypatch: pytest.MonkeyPatch, host: str, offered: list[str]
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    assert list(load_profiles().profiles) == [*offered, "local"]


def test_a_short_name_counts_where_the_full_one_confirms_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "login4.summit.olcf.ornl.gov"
    monkeypatch.setattr("socket.gethostname", lambda: "login4")
    monkeypatch.setattr("socket.getfqdn", lambda name: full if name == "login4" else name)
    assert list(load_profiles().profiles) == ["olcf-summit", "local"]


def test_a_users_file_of_the_same_name_brings_it_into_the_list(site: Site) -> None:
    site.write("user", "olcf-andes.yaml", "limits: {workers: 64}\n")
    profile = load_profiles().profiles["olcf-andes"].profile
    assert (profile.limits.workers, profile.job.queue) == (64, "batch")
