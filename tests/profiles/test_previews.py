"""Script and command of every shipped profile can be shown where its system is not installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.core.errors import UnsuitableEnvironment
from jupyter_gpucluster.profiles import find_profile
from jupyter_gpucluster.profiles.search import BUILT_IN

SHIPPED = sorted(path.stem for path in BUILT_IN.glob("*.yaml"))
COMMANDS = {
    "slurm": "sbatch", "pbs": "qsub", "torque": "qsub", "sge": "qsub", "lsf": "bsub",
    "oar": "oarsub", "htcondor": "condor_submit", "cobalt": "qsub", "kubernetes": "kubectl",
    "local": "gpucluster-jobs",
}  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_script_and_command_are_shown_and_the_script_is_sound(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    monkeypatch.setenv("PATH", str(home))
    profile = find_profile(name).profile
    options = {key: "value" for key, option in profile.options.items() if option.required}
    each = 1 if profile.job.gpus == "auto" else max(1, profile.job.gpus)
    target = Target(each, each)
    shown = Clusters(home / "clusters").script(name, target=target, options=options)
    words = shown.command.split()
    assert any(word.endswith(COMMANDS[profile.backend]) for word in words), shown.command
    assert shown.text.startswith("#!")
    assert "@MARK@" not in shown.text + shown.command
    assert "scheduler.json" in shown.text
    checked = subprocess.run([bash, "-n"], input=shown.text, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert not (home / "clusters").exists()


def test_a_script_is_shown_where_the_python_of_the_profile_is_not(home: Path) -> None:
    profiles = home / "data" / "gpucluster" / "profiles"
    profiles.mkdir(parents=True)
    text = (
        "{title: Far away, backend: slurm, job: {gpus: 1}, environment: {python: /far/away/python}}"
    )
    (profiles / "far.yaml").write_text(text)
    clusters = Clusters(home / "clusters")
    assert "/far/away/python" in clusters.script("far").text
    with pytest.raises(UnsuitableEnvironment, match="does not exist"):
        clusters.start("far")
