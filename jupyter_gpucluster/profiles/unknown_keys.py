"""The fix for a key that profiles do not have: another system's word, another place, a typo."""

from __future__ import annotations

from collections.abc import Sequence

from .model import Path, Profile, all_keys, join, places, section_at, suggestion
from .sections import Section

DASK_AND_CONDA = {
    # dask-jobqueue's options: https://jobqueue.dask.org/en/stable/generated/.
    **dict.fromkeys(("cores", "cpu", "ncores", "n_cpus"), "job.cpus"),
    "processes": "workers.per_job",
    "project": "job.account",
    "env_extra": "environment.prologue",
    "job_script_prologue": "environment.prologue",
    "job_extra": "job.directives",
    "job_extra_directives": "job.directives",
    "resource_spec": "job.directives",
    "header_skip": "job.skip_directives",
    "job_directives_skip": "job.skip_directives",
    "extra": "workers.extra_args",
    "worker_extra_args": "workers.extra_args",
    # Words of many systems and scripts.
    "mem": "job.memory",
    "time": "job.walltime",
    **dict.fromkeys(("gpu", "ngpus", "num_gpus", "gpus_per_job", "gpus_per_node"), "job.gpus"),
    **dict.fromkeys(("nthreads", "threads_per_worker"), "workers.threads"),
    **dict.fromkeys(("env_vars", "environment_variables", "export"), "environment.variables"),
    **dict.fromkeys(("scheduler", "system", "cluster_type"), "backend"),
    "description": "summary",
}
"""Words for keys, whatever the batch system."""
_PYTHON = "Set `environment.python` to the path of the environment's Python: /path/to/bin/python."
_MODULES = 'Use `environment.prologue: ["module load NAME"]`.'
SENTENCES = {
    **dict.fromkeys(("conda", "conda_env", "venv", "virtualenv"), _PYTHON),
    **dict.fromkeys(("modules", "module", "module_load"), _MODULES),
    "env": f"Use `environment.variables` for variables. {_PYTHON}",
    "name": "The file's name is the profile's name, and the cluster names its jobs; use `title` for"
    " the name that users see.",
    "shebang": "The job script is run by bash; use `environment.prologue` for lines such as"
    " `. /etc/profile`.",
    **dict.fromkeys(
        ("n_workers", "num_workers", "max_workers", "min_workers"),
        "Users choose the number of workers at start; `limits.workers` is the most that they get.",
    ),
}
"""Sentences about words that no single key stands for."""


def message(path: Path, backend: str, model: type[Section] = Profile) -> str:
    """Return the message about an unknown key of a profile for a batch system."""
    key, above = path[-1], path[:-1]
    where = f" in `{join(above)}`" if above else ""
    return f"unknown key `{key}`{where}. {_fix(key, above, backend, model)}"


def _fix(key: str, above: Path, backend: str, model: type[Section]) -> str:
    section = section_at(above, model)
    known = list(section.model_fields) if section is not None else []
    word = key.lower().replace("-", "_")
    # In an option or container, `name` and the like have other meanings.
    if model is Profile and not {"options", "container"} & {*above}:
        if found := _synonym(word, backend):
            return found
        if word not in known and (others := places(word)):
            return f"It belongs at {' or '.join(f'`{other}`' for other in others)}."
    below = [each for each in all_keys() if each.count(".") == 1]
    top = model is Profile and not above
    close = suggestion(key, known) or suggestion(key, below if top else ())
    return close[2:3].upper() + close[3:] or f"Known keys are {', '.join(known)}."


def _synonym(word: str, backend: str) -> str:
    # The package of all dialects is not loaded for profiles without mistakes.
    from ..batch.contradictions import keys_meant, option_meant

    if found := _use(keys_meant(word, backend), word) or SENTENCES.get(word):
        return found
    if option := option_meant(word, backend):
        value = option if option[-1].isalpha() else f"{option}VALUE"
        return f'Use `job.directives: ["{value}"]`.'
    if word in DASK_AND_CONDA:
        section, _, key = DASK_AND_CONDA[word].rpartition(".")
        return _use([key], word) if section == "job" else f"Use `{DASK_AND_CONDA[word]}`."
    return _use(keys_meant(word), word) if not places(word) else ""


def _use(keys: Sequence[str], word: str) -> str:
    if not keys:
        return ""
    remark = " `job.gpus` counts the GPUs of all nodes of a job." if "per_node" in word else ""
    return f"Use {' and '.join(f'`job.{key}`' for key in keys)}.{remark}"
