"""Values and options of a profile: each mistake has its place, its key and a fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jupyter_gpucluster.profiles import Profile
from jupyter_gpucluster.profiles.model import Option
from jupyter_gpucluster.profiles.reader import Branch, Items, Leaf, Mark, Tree, read_text
from jupyter_gpucluster.profiles.validation import validate, warnings

HEAD = "title: x\nbackend: slurm\n"

WRONG = {
    "»jbo: {}": "unknown key `jbo`. Did you mean `job`?",
    "job:\n  »walltme: 1 h": "unknown key `walltme` in `job`. Did you mean `walltime`?",
    "job:\n  »Queue: a": "unknown key `Queue` in `job`. Did you mean `queue`?",
    "»walltime: 1 h": "unknown key `walltime`. It belongs at `job.walltime`.",
    "access:\n  »zzz: 1": "unknown key `zzz` in `access`. Known keys are login_hops.",
    "job: {gpus: »many}": "`job.gpus`: 'many' is not a whole number",
    "job: {nodes: »1.5}": "`job.nodes`: 1.5 is not a whole number",
    "job: {nodes: »0}": "`job.nodes`: must be 1 or more, not 0",
    "job: {cpus: »true}": "`job.cpus`: true is not a whole number",
    "job: {submit_args: »[x.sh]}": (
        "`job.submit_args`: must begin with an option, such as -name, not with 'x.sh'"
    ),
    "job: {queue: »[a]}": "`job.queue`: must be text, not a list",
    "job: {»queue: {a: b}}": "`job.queue`: must be text, not a mapping",
    "job: {queue:» }": "`job.queue`: must be text, not empty",
    "hosts: »login1": (
        "`hosts`: must be a list, not text; write [a, b] or one line with `- ` per item"
    ),
    "job: »big": "`job`: must be a mapping of keys, not text",
    "limits: »[1]": "`limits`: must be a mapping of keys, not a list",
    "job:»": "`job`: must be a mapping of keys, not empty",
    "default: »yes": "`default`: must be true or false, not 'yes'",
    "job: {memory: »4G}": "`job.memory`: '4G' is ambiguous: write 4 GB or 4 GiB",
    "workers: {memory_limit: »lots}": "`workers.memory_limit`: 'lots' is not an amount of memory",
    "job: {walltime: »1:00}": (
        "`job.walltime`: '1:00' may mean hours and minutes or minutes and seconds"
    ),
    'job: {walltime: »"{walltime}"}': (
        "`job.walltime`: names in braces work in text only; give the option `field: job.walltime`"
    ),
    "environment: {variables: {PYTHON: »3.10}}": (
        "`environment.variables.PYTHON`: 3.1 is read as a number or truth value; put it in quotes"
    ),
    "environment:\n  variables:\n    OMP_PROC_BIND: »FALSE": (
        "false is read as a number or truth value; put it in quotes"
    ),
    "environment: {variables: {»2x: a}}": "'2x' cannot be the name of an environment variable",
    "environment: {python: »python3}": (
        "must be \"kernel\" or the absolute path of a Python, not 'python3'"
    ),
    'job: {queue: »"a\\nb"}': "must be one line of text",
    'job: {queue: »"a\\0b"}': "must be one line of text",
    'job: {queue: »"\\uD800"}': "half of a surrogate pair",
    f"job: {{queue: »{'a' * 5000}}}": "is longer than 4096 characters",
    "hosts:\n- a\n- »[b]": "`hosts.1`: must be text, not a list",
    "launcher: »srunn": (
        "`launcher`: 'srunn' is not one of none, srun, mpirun, mpiexec, jsrun, aprun, ssh; did"
        " you mean `srun`?"
    ),
    "network: {protocol: »ssl}": "`network.protocol`: 'ssl' is not one of tls, tcp",
    "network: {ports: »500-400}": "`network.ports`: '500-400' is not a range of ports",
    "access: {login_hops: [»'a b']}": "'a b' is not a host to log in to",
    "access: {login_hops: [»'-oProxyCommand=x']}": "is not a host to log in to",
    "environment: {»container: {runtime: shifter}}": (
        "`environment.container.image` is missing; add it"
    ),
    "locked: [job.queue, »limit]": "`locked`: there is no key 'limit'; did you mean `limits`?",
    "locked: [»job.que]": "`locked`: there is no key 'job.que'; did you mean `job.queue`?",
    "locked: [»queue]": "`locked`: there is no key 'queue'; did you mean `job.queue`?",
    'job: {account: »"{acount}"}\noptions: {account: {type: string}}': (
        "`job.account`: {acount} names no option; did you mean `account`?"
    ),
    "environment: {prologue: [»'echo {x}']}": (
        "{x} names no option; declare `options.x`, or double the braces to keep them"
    ),
    "options:\n  »queue: {title: Queue}": "`options.queue.type` is missing; add it",
    "options:\n  queue: {type: »strnig}": "did you mean `string`?",
    "options:\n  »My-Queue: {type: string}": "'My-Queue' cannot be the name of an option",
    "options:\n  »interface: {type: string}": "`options.interface` has no effect: give it `field:`",
    "options:\n  q: {type: string, field: »job.quee}": "not 'job.quee'; did you mean `job.queue`?",
    "options:\n  n: {type: integer, field: »limits.workers}": (
        "`field` must be a key below job, workers,"
    ),
    "options:\n  n: {type: string, field: »job}": "`field` must be a key below job",
    "options:\n  »queue: {type: enum}": "needs `choices`",
    "options:\n  queue: {type: string, choices: »[a]}": "`choices` are for type enum only",
    "options:\n  queue: {type: enum, choices: »[a, '']}": (
        "an empty choice means that none was made"
    ),
    "options:\n  queue: {type: enum, choices: [a, b], default: »c}": "'c' is not a choice",
    "options:\n  walltime: {type: duration, maximum: 4 h, default: »5 h}": (
        "'5 h' is more than 04:00:00"
    ),
    "options:\n  gpus: {type: integer, minimum: »4, maximum: 2}": (
        "`minimum` is more than `maximum`"
    ),
    "options:\n  queue: {type: string, maximum: »4}": (
        "`maximum` is for types integer, duration, memory only"
    ),
    "options:\n  walltime: {type: duration, maximum: »long}": (
        "`maximum`: 'long' is not a length of time"
    ),
    "options:\n  gpus: {type: integer, pattern: »a}": "`pattern` is for types string and path only",
    "options:\n  queue: {type: string, pattern: »'(a'}": "'(a' is not a regular expression",
    "options:\n  queue: {type: string, pattern: »'(a)\\1'}": (
        "look-around and back references are not supported"
    ),
    f"options:\n  queue: {{type: string, pattern: »{'a' * 300}}}": (
        "pattern is longer than 200 characters"
    ),
    "options:\n  gpus: {type: duration, default: 1 h, field: job.queue}\n  nodes: {type: string, default: »many}": (  # noqa: E501
        "`options.nodes`: 'many' does not fit `job.nodes`: 'many' is not a whole number"
    ),
    "options:\n  hop: {type: string, field: job.directives, default: »a}": (
        "does not fit `job.directives`"
    ),
}
"""Keys of a profile with one mistake, whose place » marks, and words of its message."""


SYNONYMS = {
    ("slurm", "partition"): "Use `job.queue`.",
    ("slurm", "qos"): 'Use `job.directives: ["--qos=VALUE"]`.',
    ("slurm", "constraint"): 'Use `job.directives: ["--constraint=VALUE"]`.',
    ("slurm", "exclusive"): 'Use `job.directives: ["--exclusive"]`.',
    ("slurm", "project"): "Use `job.account`.",
    ("slurm", "cores"): "Use `job.cpus`.",
    ("slurm", "cpus-per-task"): "Use `job.cpus`.",
    ("slurm", "gres"): "Use `job.gpus` and `job.gpu_type`.",
    ("slurm", "gpus_per_node"): "`job.gpus` counts the GPUs of all nodes of a job.",
    ("slurm", "nodes"): "Use `job.nodes`.",
    ("slurm", "mem"): "Use `job.memory`.",
    ("slurm", "time"): "Use `job.walltime`.",
    ("pbs", "select"): "Use `job.nodes` and `job.cpus` and `job.memory` and `job.gpus`.",
    ("pbs", "ncpus"): "Use `job.cpus`.",
    ("pbs", "place"): 'Use `job.directives: ["-l place=VALUE"]`.',
    # The words of another batch system have the same meaning, its directives have not.
    ("pbs", "partition"): "Use `job.queue`.",
    ("pbs", "qos"): "Known keys are title,",
    ("lsf", "nnodes"): "Use `job.nodes`.",
    ("sge", "h_rt"): "Use `job.walltime`.",
    ("htcondor", "request_gpus"): "Use `job.gpus`.",
    ("htcondor", "requirements"): 'Use `job.directives: ["requirements = VALUE"]`.',
    ("kubernetes", "namespace"): "Use `job.account`.",
    ("local", "modules"): 'Use `environment.prologue: ["module load NAME"]`.',
    ("local", "conda"): "Set `environment.python` to the path of the environment's Python",
    ("local", "env"): "Use `environment.variables` for variables. Set `environment.python`",
    ("local", "interface"): "It belongs at `head.interface` or `network.interface`.",
    ("local", "name"): "The file's name is the profile's name",
    ("local", "walltme"): "Did you mean `job.walltime`?",
}


@pytest.mark.parametrize("backend, key", SYNONYMS)
def test_an_unknown_key_is_answered_by_its_meaning_its_places_or_a_likely_one(
    backend: str, key: str
) -> None:
    [finding] = validate(read_text(f"title: x\nbackend: {backend}\n{key}: 1\n", "f"))[1]
    assert SYNONYMS[backend, key] in finding.message


def test_keys_of_an_option_are_no_words_of_a_batch_system() -> None:
    text = HEAD + "options: {queue: {type: string, name: Queue}}\n"
    [finding] = validate(read_text(text, "f"))[1]
    assert "Known keys are type, title" in finding.message


@pytest.mark.parametrize("marked,words", WRONG.items())
def test_a_wrong_value_is_reported_with_line_column_and_fix(marked: str, words: str) -> None:
    before, after = marked.split("»")
    line, column = before.count("\n"), len(before) - before.rfind("\n")
    profile, findings = validate(read_text(f"{HEAD}{before}{after}\n", "site.yaml"))
    assert profile is None
    [finding] = findings
    assert words in finding.message
    assert finding.mark == Mark("site.yaml", HEAD.count("\n") + line + 1, column)
    assert "\n" not in finding.message


def test_all_wrong_values_of_a_file_are_told_at_once() -> None:
    text = HEAD + "job: {gpus: x, nodes: y}\nhost: a\nlimits: {workers: -1}\n"
    _, findings = validate(read_text(text, "f"))
    places = [(f.mark.line, f.mark.column) for f in findings]
    assert places == [(3, 13), (3, 23), (4, 1), (5, 19)]


def test_directives_that_set_what_a_key_sets_are_found_where_they_stand() -> None:
    text = HEAD + "job:\n  gpus: 2\n  directives: ['-C gpu', '--gres=gpu:1', --het-group=1]\n"
    profile, findings = validate(read_text(text, "f"))
    assert profile is None
    gpus, parts = findings
    assert gpus.mark == Mark("f", 5, 26)
    assert gpus.message == (
        "`job.directives`: The directive '--gres=gpu:1' sets what job.gpus sets. "
        "Remove the directive and use job.gpus. job.gpu_request sets its spelling. "
        "To keep the directive, leave out our line: skip_directives: ['--gpus-per-node=']."
    )
    assert "heterogeneous" in parts.message


def test_an_argument_that_sets_what_a_key_sets_is_found_where_it_stands() -> None:
    tree = read_text(HEAD + "job: {gpus: 2,\n  submit_args: ['--gpus', '2']}\n", "f")
    _, [finding] = validate(tree)
    assert finding.mark.line == 4
    assert "The argument '--gpus 2' sets what job.gpus sets" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        # The values of options are known at start.
        "job: {walltime: 1 h, directives: ['-t 30']}\noptions: {walltime: {type: duration}}",
        "job: {queue: a, directives: ['-p {kind}']}\noptions: {kind: {type: string}}",
        "job: {gpus: 2, directives: ['--gres=gpu:1'], skip_directives: [--gpus-per-node]}",
        "job: {gpus: 2, gpu_request: none, directives: ['--gres=gpu:1']}",
        "job: {directives: ['--gres=gpu:1', '-t 30', '-n 4']}",
    ],
)
def test_directives_that_set_no_key_of_our_lines_are_no_finding(text: str) -> None:
    tree = read_text(HEAD + text, "f")
    profile, findings = validate(tree)
    assert findings == []
    assert profile is not None
    assert list(warnings(profile, tree)) == []


def test_a_launcher_is_its_name_or_a_mapping() -> None:
    assert Profile.model_validate(
        {"title": "x", "backend": "lsf", "launcher": "jsrun"}
    ) == Profile.model_validate({"title": "x", "backend": "lsf", "launcher": {"name": "jsrun"}})


def test_the_python_of_a_profile_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    data = {"title": "x", "backend": "local", "environment": {"python": "~/env/bin/python"}}
    assert Profile.model_validate(data).environment.python == "/home/someone/env/bin/python"


def test_a_profile_cannot_be_changed() -> None:
    profile = Profile(title="x", backend="local")
    with pytest.raises(ValidationError, match="frozen"):
        profile.title = "y"  # type: ignore[misc]


def test_a_whole_number_may_stand_for_text() -> None:
    profile, _ = validate(read_text("title: 7\nbackend: pbs\njob: {account: 12345}\n", "f"))
    assert profile is not None
    assert (profile.title, profile.job.account) == ("7", "12345")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
KEYS = st.sampled_from(
    [*Profile.model_fields, *Option.model_fields, "queue", "cpus", "string", "zzz"]
)
MARK = Mark("f", 1, 1)


def _tree(value: object) -> Tree:
    if isinstance(value, dict):
        entries = {key: _tree(below) for key, below in value.items()}
        return Branch(entries, dict.fromkeys(entries, MARK), MARK)
    if isinstance(value, list):
        return Items([_tree(item) for item in value], MARK)
    assert value is None or isinstance(value, (bool, int, float, str))
    return Leaf(value, MARK)


@given(
    st.dictionaries(
        KEYS,
        st.recursive(
            SCALARS | st.sampled_from(["string", "enum", "{zzz}", "job.queue", "local"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
            max_leaves=12,
        ),
        max_size=6,
    )
)
def test_any_tree_is_a_profile_or_has_findings(value: dict[str, object]) -> None:
    tree = _tree({"title": "x", "backend": "local", **value})
    assert isinstance(tree, Branch)
    profile, findings = validate(tree)
    assert (profile is None) == bool(findings)
    assert all("\n" not in finding.message for finding in findings)
