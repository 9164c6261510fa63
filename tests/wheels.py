"""Small packages for installers, made without any other package.

Packages that come as sources take this very file along as their build backend.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import time
import zipfile
from pathlib import Path


def make_wheel(folder: str | Path, name: str, version: str, more: str = "") -> str:
    """Write a wheel that holds nothing but its description; return its file name."""
    stem = f"{name.replace('-', '_')}-{version}"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    file = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / file, "w") as wheel:
        for part, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            record += f"{stem}.dist-info/{part},sha256={digest.decode()},{len(text)}\n"
            wheel.writestr(f"{stem}.dist-info/{part}", text)
        wheel.writestr(f"{stem}.dist-info/RECORD", f"{record}{stem}.dist-info/RECORD,,\n")
    return file


def make_source(folder: Path, name: str) -> Path:
    """Write a package that builds itself; it waits as long as it has a file ``wait`` beside it."""
    folder.mkdir()
    (folder / "backend.py").write_text(Path(__file__).read_text())
    (folder / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        f"[project]\nname = '{name}'\nversion = '0.3'\n"
    )
    return folder


def make_repository(folder: Path, name: str) -> Path:
    """Write such a package as a git repository."""
    make_source(folder, name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def build_wheel(
    wheels: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    """Build the package in this folder, as installers ask a backend to."""
    for line in Path("pyproject.toml").read_text().splitlines():
        if line.startswith("name = "):
            name = line.split("'")[1]
            if name == "endless":
                Path(os.environ["BUILD_BEGUN"]).touch()
                time.sleep(600)
            if name == "broken":
                raise SystemExit("cannot find the compiler")
            return make_wheel(wheels, name, "0.3")
    raise SystemExit("no name")
