"""The probe on nodes: alone in any Python, and without a listener for others."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch.variables import node_lists
from jupyter_gpucluster.node import node_list, probe


def test_it_is_written_for_pythons_older_than_ours() -> None:
    text = Path(probe.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        name.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_a_rank_answers_alone_without_this_package(tmp_path: Path) -> None:
    for part in ("jobs", "answers"):
        (tmp_path / part).mkdir()
    listener = probe.Listener("secret")
    plan = {
        "secret": "secret",
        "port": listener.port,
        "addresses": ["127.0.0.1"],
        "ranks": 1,
        "nodes": 1,
        "interface": "",
        "python": sys.executable,
        "modules": ["json", "no_such_module"],
        "programs": ["sh", "no-such-program"],
    }
    (tmp_path / "jobs" / "probe.json").write_text(json.dumps(plan))
    script = tmp_path / "jobs" / "probe.py"
    script.write_bytes(Path(probe.__file__).read_bytes())
    argv = [sys.executable, "-I", "-S", str(script), "rank", str(tmp_path), "w-n0", str(tmp_path)]
    subprocess.run(argv, check=True, timeout=60)
    listener.close()
    [(name, told)] = probe.answers(tmp_path, ".json").items()
    assert name == "w-n0"
    assert told["home"]["127.0.0.1"]["trouble"] == ""
    assert abs(told["home"]["127.0.0.1"]["ahead"]) < 5
    assert listener.callers == {"w-n0"}
    assert told["interfaces"]["lo"] == "127.0.0.1"
    assert told["local_directory"]["path"] == str(tmp_path)
    assert told["missing"] == ["no-such-program"]
    assert list(told["imports"]["troubles"]) == ["no_such_module"]
    assert told["neighbour"] == {}


def test_only_who_knows_the_secret_is_answered_or_believed() -> None:
    listener = probe.Listener("secret")
    port = listener.port
    assert probe.call("127.0.0.1", port, "secret", "n1")["trouble"] == ""
    assert probe.call("127.0.0.1", port, "guess", "n2")["trouble"] == "another server answers there"
    assert listener.callers == {"n1"}
    listener.close()
    assert probe.call("127.0.0.1", port, "secret", "n1")["trouble"] == "Connection refused"


def test_another_service_on_the_same_address_is_not_taken_for_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve() -> None:
            caller, _ = other.accept()
            with caller:
                caller.recv(300)
                caller.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        told = probe.call("127.0.0.1", other.getsockname()[1], "secret", "n1")
        thread.join()
    assert told == {"trouble": "another server answers there"}


def test_ranks_call_the_next_one_on_another_node() -> None:
    listener = probe.Listener("secret")
    mine = {"host": probe.host(), "interfaces": {}, "usual": "", "port": 1}
    theirs = {"host": "n2", "interfaces": {"ib0": "127.0.0.1"}, "usual": "192.0.2.1"}
    others = {"r0": mine, "r1": mine, "r2": {**theirs, "port": listener.port}}
    plan = {"secret": "secret", "interface": "ib0"}
    told = probe.call_next("r0", others, plan)
    assert told == {"host": "n2", "address": "127.0.0.1", "trouble": ""}
    assert probe.call_next("r0", {"r0": mine, "r1": mine}, plan) == {}
    listener.close()


def test_the_file_system_of_a_path_is_that_of_the_innermost_mount() -> None:
    assert probe.file_system("/proc/self") == "proc"
    assert probe.file_system("/") not in ("", "proc")


def test_lines_of_mounts_that_are_short_or_hold_odd_characters_hide_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = "1 2 0:3 / / rw - ext4 d rw\n1 2\n1 2 0:3 / /a\x1cb rw - xfs d rw\n1 2 3 / /proc rw -\n"
    monkeypatch.setattr(Path, "read_text", lambda self, **options: lines)
    assert probe.file_system("/usr") == "ext4"
    assert probe.file_system("/proc") == "ext4"


def test_a_directory_that_cannot_be_written_says_where_and_why(tmp_path: Path) -> None:
    assert probe.directory(str(tmp_path / "new" / "place"))["trouble"] == ""
    assert list(tmp_path.iterdir()) == []
    told = probe.directory("/proc/nowhere")
    assert (told["path"], told["file_system"]) == ("/proc/nowhere", "proc")
    assert told["trouble"].startswith("/proc: ")


def test_a_missing_or_broken_python_is_reported(tmp_path: Path) -> None:
    missing = probe.first_import(str(tmp_path / "python"), ["json"])
    assert missing["troubles"] == {"": f"{tmp_path}/python: No such file or directory"}
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho libpython3.11.so.1.0: cannot open >&2; exit 127\n")
    broken.chmod(0o755)
    told = probe.first_import(str(broken), ["json"])
    assert told["troubles"] == {"": "libpython3.11.so.1.0: cannot open"}


def test_ssh_is_asked_for_no_password_and_its_last_words_are_kept(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\ncase "$*" in *BatchMode=yes*n1*) exit 0;; esac\n'
        "echo Warning; echo 'n2: Permission denied (publickey).' >&2; exit 255\n"
    )
    ssh.chmod(0o755)
    told = probe.log_in([str(ssh), "-p", "2222"], ["n1", "n2"])
    assert told == {"n2": "n2: Permission denied (publickey)."}


def test_the_nodes_of_a_job_are_read_by_what_lies_beside_the_probe(tmp_path: Path) -> None:
    for part in ("jobs", "answers"):
        (tmp_path / part).mkdir()
    (tmp_path / "jobs" / "probe.py").write_bytes(Path(probe.__file__).read_bytes())
    (tmp_path / "jobs" / "hostlists.py").write_text(node_list.reader(node_lists()))
    (tmp_path / "jobs" / "probe.json").write_text('{"nodes": 2}')
    argv = [sys.executable, "-I", str(tmp_path / "jobs" / "probe.py"), "ssh", str(tmp_path), "true"]
    told: list[dict[str, Any]] = []
    for environment in ({"SLURM_JOB_NODELIST": "n[1-3]"}, {}):
        subprocess.run(argv, check=True, timeout=60, env={**os.environ, **environment})
        told.append(json.loads((tmp_path / "answers" / "ssh.json").read_text()))
    assert told[0] == {"hosts": ["n2", "n3"], "troubles": {}}
    assert told[1]["hosts"] == []
    assert "it requested 2" in told[1]["troubles"][""]
