"""Seconds of ``list --json`` with 200 records of which 5 are live, and of ``--help``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from measuring import cli, own_place, seconds, show, verdict

RECORDS = 200
LIVE = 5


def make_history(directory: Path, count: int) -> None:
    """Copy the directory of an ended cluster under other ids."""
    record = json.loads((directory / "record.json").read_bytes())
    for number in range(count):
        copy = directory.with_name(f"zz{number:04}")
        shutil.copytree(directory, copy)
        for name in ("record.json", "summary.json"):
            text = (copy / name).read_text().replace(record["id"], copy.name)
            (copy / name).write_text(text.replace(record["name"], f"old-{number}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    everything = 0.0
    bare: list[float] = []
    listed: list[float] = []
    helped: list[float] = []
    with own_place():
        _, view = cli("start", "local", "--workers", "1", "--wait", "--json")
        cli("stop", view["name"], "--wait")
        make_history(Path(view["directory"]), RECORDS - LIVE - 1)
        for _ in range(LIVE):
            cli("start", "local", "--workers", "1", "--wait", "--json")
        for number in range(rounds + 1):  # the first only warms the disk's cache
            empty, _ = seconds([sys.executable, "-c", "pass"])
            took, found = cli("list", "--json")
            assert len(found["clusters"] if isinstance(found, dict) else found) == LIVE
            everything, _ = cli("list", "--all", "--json")
            words, _ = seconds([sys.executable, "-m", "jupyter_gpucluster", "--help"])
            if number:
                bare.append(empty)
                listed.append(took)
                helped.append(words)
    print(f"{'':<44} {'least':>6} {'median':>6} {'most':>6}")
    base = show("python -c pass", bare)
    listing = show(f"list --json, {RECORDS} records, {LIVE} live", listed)
    usage = show("--help", helped)
    print(f"list --all --json, last round: {everything:.3f} s")
    met = [
        verdict("list beyond interpreter start", listing - base, 0.15, "s"),
        verdict("--help", usage, 0.4, "s"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
