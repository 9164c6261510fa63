"""Questions about jobs that a listing lacks, and answers that do not count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.batch.queue import LOOK_UPS, Queue
from jupyter_gpucluster.batch.status_cache import READS_PER_MINUTE, StatusCache
from jupyter_gpucluster.core.job import CommandResult, JobState, Submission
from tests.batch.recorded import CAPTURED, FORM

MARK = "gpc-abc123-1"
SLURM = "slurm_load_jobs error: Invalid job id specified\n"
PBS = {"pbs_version": "23", "Jobs": {}}


def recorded(file: str) -> CommandResult:
    match = FORM.fullmatch((CAPTURED / file).read_text("utf-8"))
    assert match
    command, code, out, err = match.groups()
    return CommandResult(tuple(command.split()), int(code), out, err)


class Site:
    """Answers each command as a test says, by the longest beginning that fits."""

    def __init__(self, answers: dict[str, tuple[int, str, str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        line = " ".join(argv)
        self.asked.append(line)
        fits = [part for part in self.answers if part in line]
        return CommandResult(tuple(argv), *self.answers[max(fits, key=len)])


def row(id: str, state: str = "RUNNING", mark: str = MARK) -> str:
    return f"{id}|{state}|None|c1|2026-11-28T00:00:00|2026-11-28T01:00:00|0|{mark}|\n"


def shown(state: str, mark: str = MARK) -> str:
    """Return what ``scontrol show job -o`` says of a job [22.05, shortened]."""
    return (
        f"JobId=8 ArrayJobId=7 ArrayTaskId=1 JobName={mark} UserId=ann(1001) Priority=1"
        f" JobState={state} Reason=None Dependency=(null) ExitCode=3:0 TimeLimit=00:05:00"
        " StartTime=2026-11-28T00:00:00 EndTime=2026-11-28T01:00:00 NodeList=c1 NumNodes=1\n"
    )


# Proof, in each system's own words.


@pytest.mark.parametrize(
    "backend, file, id",
    [
        ("pbs", "pbs/status_purged__qstat_json.txt", "90.login1"),
        ("pbs", "pbs/status_mixed_valid_unknown__qstat_json.txt", "999999.login1"),
        ("pbs", "pbs/status_finished_history_disabled__qstat.txt", "91.login1"),
        ("torque", "pbs/status_unknown_id__qstat.txt", "999999.login1"),
        ("sge", "sge/status_finished__qstat_j.txt", "108"),
        ("sge", "sge/status_cancelled_pending__qstat_j.txt", "121"),
        ("sge", "sge/status_cancelled_pending__qstat_j.txt", "121.4"),
    ],
)
def test_recorded_words_deny_the_id_and_no_other(backend: str, file: str, id: str) -> None:
    dialect, answer = find_backend(backend), recorded(file)
    assert dialect.denies(answer, id)
    assert not dialect.denies(answer, f"1{id}")
    assert not dialect.denies(CommandResult(answer.argv, 0, answer.stdout, ""), id)


@pytest.mark.parametrize(
    "backend, id, code, out, err, denied",
    [
        ("slurm", "7_0", 1, "", SLURM, True),
        ("slurm", "7_0", 1, "Job 7_0 not found\n", "", True),
        ("slurm", "7_0", 1, "Job 7_01 not found\n", "", False),
        ("slurm", "7_0", 1, "", "Unable to contact slurm controller", False),
        ("slurm", "7_0", 0, "", "", False),
        ("lsf", "7[1]", 255, "", "Job <7[1]> is not found\n", True),
        ("lsf", "7[1]", 0, '{"RECORDS":[{"JOBID":"7","ERROR":"Job <7> is not found"}]}', "", True),
        ("lsf", "7[1]", 255, "", "LSF is down. Please wait ...\n", False),
        ("torque", "7.s", 153, "", "qstat: Unknown Job Id Error 7.s\n", True),
        ("torque", "7[2].s", 153, "", "qstat: Unknown Job Id 7[].s MSG=no such job\n", True),
        ("pbs", "7.s", 35, "", "qstat: 7.s Job has finished, use -x or -H to obtain\n", True),
        ("cobalt", "7", 1, "", "", True),
        ("cobalt", "7", 1, "", "Failed to connect to queue manager\n", False),
        ("htcondor", "7.0", 0, "", "", False),
        ("oar", "7", 0, "", "", False),
        ("moab", "Moab.7", 1, "", "", False),
    ],
)
def test_what_a_system_says_of_one_job(
    backend: str, id: str, code: int, out: str, err: str, denied: bool
) -> None:
    dialect = find_backend(backend)
    argv = dialect.look_up(id) or ["none"]
    assert dialect.denies(CommandResult(tuple(argv), code, out, err), id) is denied


def test_only_where_it_is_complete_by_itself_the_listing_is_proof() -> None:
    proving = {name for name, dialect in BACKENDS.items() if dialect.listing_proves}
    assert proving == {"local", "demo", "kubernetes"}


def test_grid_engine_tells_of_one_job_that_it_is_there() -> None:
    found = find_backend("sge").parse_status(
        recorded("sge/status_mixed_valid_unknown__qstat_j.txt")
    )
    assert [(job.id, job.mark, job.state) for job in found.values()] == [
        ("129", "gpc-7f3a2b-1", JobState.UNKNOWN)
    ]
    assert find_backend("sge").look_up("129.3") == ["qstat", "-j", "129"]


# One command for all, then one by one.


async def test_history_is_asked_about_all_and_the_system_about_the_others() -> None:
    site = Site(
        {
            "sacct": (
                0,
                f"7_0|FAILED|3:0|c1|Unknown|Unknown|{MARK}\n7_1|RUNNING|0:0||||{MARK}\n",
                "",
            ),
            "-o 7_1": (0, shown("RUNNING"), ""),
            "-o 7_2": (1, "Job 7_2 not found\n", ""),
            "-o 7_3": (1, "", "Unable to contact slurm controller\n"),
        }
    )
    queue = Queue(find_backend("slurm"), site)
    trace = await queue.trace(dict.fromkeys(["7_0", "7_1", "7_2", "7_3"], MARK))
    assert trace.history["7_0"].exit_code == 3
    assert trace.listing["7_1"].state is JobState.RUNNING
    assert trace.unknown == {"7_2"}
    assert [line.split()[0] for line in site.asked] == ["sacct", *["scontrol"] * 3]


def test_what_slurm_shows_of_one_job_is_read_like_a_row_of_its_listing() -> None:
    slurm = find_backend("slurm")
    argv = tuple(slurm.look_up("7_1") or ())
    [job] = slurm.parse_status(CommandResult(argv, 0, shown("FAILED"), "")).values()
    assert (job.id, job.task, job.mark, job.state) == ("7_1", 1, MARK, JobState.FAILED)
    assert (job.exit_code, job.nodes) == (3, ("c1",))
    assert job.started is not None
    assert slurm.parse_status(CommandResult(argv, 0, "", "")) == {}


async def test_tasks_that_slurm_lists_as_a_cancelled_array_only_were_cancelled() -> None:
    site = Site({"squeue": (0, row("7", "CANCELLED") + row("7_0"), "")})
    listed = await Queue(find_backend("slurm"), site).poll(["7_0", "7_1"]) or {}
    assert [(id, listed[id].state, listed[id].task) for id in ("7_0", "7_1")] == [
        ("7_0", JobState.RUNNING, 0),
        ("7_1", JobState.CANCELLED, 1),
    ]
    site.answers["squeue"] = (0, row("7", "PENDING") + row("7_0"), "")
    assert "7_1" not in (await Queue(find_backend("slurm"), site).poll(["7_0", "7_1"]) or {})


async def test_a_system_without_history_that_lists_by_id_is_asked_by_ids_first() -> None:
    one = "<Data><Job><Job_Id>7.s</Job_Id><Job_Name>gpc-abc123-1</Job_Name>"
    one += "<job_state>R</job_state></Job></Data>"
    site = Site({"-x 7.s 8.s": (0, one, ""), "-x 8.s": (153, "", "qstat: Unknown Job Id 8.s\n")})
    trace = await Queue(find_backend("torque"), site).trace({"7.s": MARK, "8.s": MARK})
    assert (list(trace.listing), set(trace.unknown)) == (["7.s"], {"8.s"})


async def test_a_number_that_was_given_to_another_job_says_nothing() -> None:
    site = Site({"sacct": (1, "", ""), "scontrol": (0, shown("RUNNING", "analysis"), "")})
    trace = await Queue(find_backend("slurm"), site).trace({"7_0": MARK})
    assert trace.listing == {}


async def test_few_are_asked_about_one_by_one_and_within_the_budget(home: Path) -> None:
    slurm = find_backend("slurm")
    site = Site({"sacct": (1, "", ""), "scontrol": (1, "", "")})
    ids = dict.fromkeys([f"{number}_0" for number in range(20)], MARK)
    await Queue(slurm, site).trace(ids)
    assert [line.split()[4] for line in site.asked[1:]] == list(ids)[:LOOK_UPS]
    site.asked.clear()
    queue = Queue(slurm, site, StatusCache(home, slurm, "ann", "abc123"))
    assert len((await queue.trace(ids)).asked) == READS_PER_MINUTE - 2
    assert len(site.asked) == READS_PER_MINUTE - 1  # one is left for a listing
    assert not (await queue.trace(ids)).asked
    assert len(site.asked) == READS_PER_MINUTE - 1


async def test_where_the_listing_is_proof_nothing_more_is_asked() -> None:
    site = Site({})
    await Queue(find_backend("kubernetes"), site).trace({f"{MARK}-0": MARK})
    assert site.asked == []


# An answer that lacks a job and has words is none.

DBD = "DBD::Pg::st execute failed: ERROR: could not access status of transaction\n"


async def test_oar_that_exits_with_0_while_its_database_fails_has_not_answered() -> None:
    queue = Queue(find_backend("oar"), Site({"oarstat": (0, "", DBD)}))
    assert await queue.poll((), ["7"]) is None
    assert "DBD::Pg" in queue.fix


async def test_words_beside_all_jobs_are_no_harm_and_the_same_words_are_none_later(
    home: Path,
) -> None:
    banner = "*** Welcome, 42 nodes are down since 08:10 ***\n"
    site = Site({"squeue": (0, row("7_0"), banner)})
    queue = Queue(find_backend("slurm"), site, root=home)
    assert list(await queue.poll(["7_0"]) or {}) == ["7_0"]
    site.answers["squeue"] = (0, "", banner.replace("42", "41").replace("08:10", "08:11"))
    assert await queue.poll(["7_0"]) == {}
    # Whoever asks next, as after the head's death, knows them, too.
    assert await Queue(find_backend("slurm"), site, root=home).poll(["7_0"]) == {}
    assert await Queue(find_backend("slurm"), site).poll(["7_0"]) is None
    site.answers["squeue"] = (0, "", banner + "squeue: error: Invalid user: ann\n")
    assert await queue.poll(["7_0"]) is None
    assert "Invalid user" in queue.fix


async def test_what_came_with_an_accepted_submission_is_the_site_s_own() -> None:
    site = Site({"sbatch": (0, "7\n", "*** Welcome ***\n"), "squeue": (0, "", "*** Welcome ***\n")})
    queue = Queue(find_backend("slurm"), site)
    await queue.submit(Submission(MARK, "/s.sh"))
    assert await queue.poll(["7_0"]) == {}


@pytest.mark.parametrize(
    "backend, out, err",
    [
        ("pbs", '{"pbs_version": "23"}', "qstat: Unknown Job Id 7.s\n"),
        ("pbs", '{"pbs_version": "23"}', "qstat: 7.s Job has finished, use -x or -H to obtain\n"),
        ("torque", "", "qstat: Unknown Job Id Error 7.s\n"),
        ("lsf", "", "No unfinished job found\n"),
        ("lsf", '{"RECORDS": []}', "No job found\n"),
        ("kubernetes", '{"items": []}', "No resources found in physics namespace.\n"),
    ],
)
async def test_a_system_s_words_for_no_such_jobs_are_part_of_a_whole_answer(
    backend: str, out: str, err: str
) -> None:
    code = 153 if backend in ("pbs", "torque") else 0
    dialect = find_backend(backend)
    site = Site({dialect.status("ann", ())[0]: (code, out, err)})
    assert await Queue(dialect, site).poll(["7.s"]) == {}


async def test_a_head_that_takes_another_one_s_answer_judges_it_for_its_own_jobs(
    home: Path,
) -> None:
    slurm = find_backend("slurm")
    site = Site({"squeue": (0, row("7_0"), "squeue: error: something\n")})
    ours, theirs = (Queue(slurm, site, StatusCache(home, slurm, "ann", id)) for id in "ab")
    assert (await ours.look(["7_0"], 10.0)).listing is not None
    poll = await theirs.look(["8_0"], 10.0)
    assert (poll.asked, poll.listing, len(site.asked)) == (True, None, 1)
