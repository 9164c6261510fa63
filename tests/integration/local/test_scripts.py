"""The scripts that a cluster shows are those that its jobs ran."""

from __future__ import annotations

from pathlib import Path

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

from .conftest import Start, WriteProfile
from .driving import fixed, until

PROFILE = """\
job: {gpus: 0}
environment: {prologue: [export FIRST=1]}
workers: {memory_limit: 1 GiB}
"""


def test_scripts_that_ran_are_shown_after_scaling_after_an_edit_and_after_the_end(
    clusters: Clusters, start: Start, write_profile: WriteProfile, home: Path
) -> None:
    name = write_profile("mine", PROFILE)
    view = start(name)
    [first] = clusters.scripts(view.id)
    assert first.mark == f"gpc-{view.id}-1"
    assert "export FIRST=1" in first.text
    assert "--count 1" in first.command
    write_profile("mine", PROFILE.replace("FIRST", "SECOND"))
    clusters.update(view.id, target=fixed(3))
    clusters.wait_ready(view.id, timeout=60)
    until(lambda: clusters.get(view.id).workers.ready == 3)
    second, again = clusters.scripts(view.id)
    assert again == first
    assert second.mark == f"gpc-{view.id}-2"
    assert "export FIRST=1" in second.text
    assert "SECOND" not in second.text
    assert "--count 2" in second.command
    assert second.written >= first.written
    directory = ClusterDirectory(Path(view.directory))
    for script in (first, second):
        assert directory.script(script.mark).read_text() == script.text
    token = (directory.path / "token").read_text()
    assert token not in first.text + first.command
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=60)
    until(lambda: not (directory.jobs / "template.sh").exists())
    assert list(clusters.scripts(view.id)) == [second, first]


def test_a_cluster_whose_scripts_an_older_version_removed_has_none(
    clusters: Clusters, start: Start
) -> None:
    view = start()
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=60)
    directory = ClusterDirectory(Path(view.directory))
    until(lambda: not (directory.jobs / "template.sh").exists())
    for path in directory.jobs.iterdir():
        path.unlink()
    assert list(clusters.scripts(view.id)) == []
