"""Answers of submit and status commands, told apart by each dialect."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import Queue
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobState, Submission

ROUTED = 'Job routed to queue "full-node".\nMemory mode set to cache quad for queue full-node\n'
FATAL = "*** FATAL EXCEPTION: (111, 'Connection refused') ***\n"
LSF_JOB = "Job <77> is submitted to queue <normal>.\n"
LSF_LIST = '{"COMMAND": "bjobs", "JOBS": 0, "RECORDS": []}'


def submitted(system: str, count: int, code: int | None, out: str, err: str) -> tuple[str, ...]:
    sent = Submission("gpc-abc123-1", "/shared/jobs/gpc-abc123-1.sh", count)
    return find_backend(system).parse_submit(sent, CommandResult(("submit",), code, out, err))


@pytest.mark.parametrize(
    "system,out,err,code,ids",
    [
        ("cobalt", "547797\n", "", 0, "547797"),
        ("cobalt", f"{ROUTED}547797\n", "", 0, "547797"),
        ("cobalt", "547797\n", "submitting walltime=30 minutes\n", 0, "547797"),
        ("cobalt", "547797\n", ROUTED, 1, "547797"),
        ("cobalt", "547797\n", "WARNING: Filesystem attribute not set for this job submission.\n",
         1, "547797"),
        ("lsf", LSF_JOB, "", 0, "77[1] 77[2]"),
        ("lsf", "Job <77> is submitted to default queue <normal>.\n", "", 0, "77[1] 77[2]"),
        ("lsf", f"Welcome to login4, 12 users\n{LSF_JOB}Bye <8>\n", "", 0, "77[1] 77[2]"),
        ("lsf", f"Job <5> requests 12 slots per GPU.\n{LSF_JOB}", "", 0, "77[1] 77[2]"),
        ("lsf", "Job <77> is submitted.\n", "", 0, "77[1] 77[2]"),
        ("htcondor", "12.0 - 12.1\n", "", 0, "12.0 12.1"),
        ("htcondor", "Welcome to the pool 7.0\n12.0 - 12.1\n", "", 0, "12.0 12.1"),
        ("htcondor", "Submitting job(s)...\n2 job(s) submitted to cluster 12.\n", "", 0,
         "12.0 12.1"),
        ("pbs", "*** Welcome, 3 jobs run. ***\n77.login1\nqsub used project phys\n", "", 0,
         "77.login1"),
        ("pbs", "77.login1\n77.login1\n", "", 0, "77.login1"),
        ("pbs", "\ufffd\ufffd willkommen\n77.login1\n2026\n3.14\n", "", 0, "77.login1"),
        ("sge", "Use the new queue!\n\n2\n", "", 0, "2"),
        ("sge", "2\nJob 7 waits before you\n", "", 0, "2"),
        ("moab", "\n41\n", "", 0, "41"),
        ("moab", "\nMoab.43\n", "", 0, "Moab.43"),
        ("moab", "41.master.example.org\n", "", 0, "41"),
    ],
)  # fmt: skip
def test_words_around_the_ids_do_not_hide_them(
    system: str, out: str, err: str, code: int, ids: str
) -> None:
    found = tuple(ids.split())
    assert submitted(system, len(found), code, out, err) == found


@pytest.mark.parametrize(
    "system,count,out,err,code",
    [
        ("cobalt", 1, "547797\n", "", None),
        ("cobalt", 1, "", "Failed to connect to queue manager\n", 1),
        ("cobalt", 1, "", FATAL, 1),
        ("cobalt", 1, "", "", 0),
        ("cobalt", 1, "1\n2\n", "", 0),
        ("cobalt", 1, "547797\n", "Error submitting job\n", 1),
        ("lsf", 3, "", "LSF is down. Please wait ...\n", 255),
        ("lsf", 3, "", "batch daemon not responding ... still trying\n", 255),
        ("lsf", 3, "", "Failed in an LSF library call: Communication time out", 255),
        ("lsf", 3, "nothing of the form", "", 0),
        ("lsf", 3, LSF_JOB + LSF_JOB.replace("77", "78"), "", 0),
        ("htcondor", 3, "", "ERROR: Can't find address of local schedd\n", 1),
        ("htcondor", 3, "", "ERROR: Failed to connect to local queue manager\nSECMAN:2007:..\n", 1),
        ("htcondor", 3, "12.0 - 12.1\n", "", 0),
        ("htcondor", 3, "12.0 - 13.2\n", "", 0),
        ("htcondor", 3, "", "", 0),
        *[("pbs", 1, out, "", 0) for out in ("", "77\n", "77.l1\n78.l1\n", "77[].login1\n")],
        ("pbs", 1, "77.login1\n", "mail: cannot send", 1),  # the job may exist
        *[("sge", 1, out, "", 0) for out in ("", "2\n3\n", "5.1-4:1\n", "Your 2 jobs\n")],
        *[("oar", 4, out, "", 0)
          for out in ("", "OAR_JOB_ID=-5\n", "OAR_JOB_ID=\n", "OAR_JOB_ID=5\n")],
        # It runs later.
        ("oar", 1, "OAR_JOB_ID=92\n",
         "[ERROR] Cannot connect to executor login1:6666. Job is killed.", 9),
        ("moab", 1, "", "ERROR:    cannot connect to server 'm'", 1),
    ],
)  # fmt: skip
def test_an_unclear_answer_to_submit_is_no_refusal(
    system: str, count: int, out: str, err: str, code: int | None
) -> None:
    with pytest.raises(BackendUnavailable):
        submitted(system, count, code, out, err)


@pytest.mark.parametrize(
    "system,line,err,fix",
    [
        ("cobalt", -1, "Script /shared/m.sh is not executable\n", "executable"),
        ("cobalt", -1, "queue nosuch does not exist\n", "job.queue"),
        ("cobalt", -1, "submitting walltime=9000 minutes\nWalltime of 9000 is above the queue's"
         " maximum\n", "job.walltime"),
        ("cobalt", -1, "Not all required arguments provided: time,nodecount needed\n",
         "job.walltime"),
        ("cobalt", -1, "Project phys is not a valid project\n", "job.account"),
        ("cobalt", -1, "qsub: No such file or directory", "Cobalt's commands"),
        ("cobalt", -1, "Moon phase\n", ""),
        ("lsf", 0, "nosuch: No such queue. Job not submitted.\n", "bqueues"),
        ("lsf", 0, "Project not specified.  Please specify one.\nRequest aborted by esub.",
         "job.account"),
        ("lsf", 0, "Error: resource strings not supported in easy mode. Job not submitted.",
         "nnodes"),
        ("lsf", 0, "RUNLIMIT: Cannot exceed queue's hard limit(s). Job not submitted.",
         "job.walltime"),
        ("lsf", 0, "Bad resource requirement syntax. Job not submitted.", "-R"),
        ("lsf", 0, "Pending job threshold reached. Job not submitted.", "fewer"),
        ("lsf", 0, "Request aborted by esub. Job not submitted.", "site's own check"),
        ("lsf", 0, "bsub: No such file or directory", "LSF's commands"),
        ("lsf", 0, "Something new. Job not submitted.", ""),
        ("htcondor", 0, "ERROR: Failed to parse command file (line 3).\n", "job.directives"),
        ("htcondor", 0, "\nERROR: MAX_JOBS_PER_SUBMISSION limit exceeded.\n", "fewer"),
        ("htcondor", 0, "condor_submit: No such file or directory", "HTCondor's commands"),
        ("htcondor", 0, "ERROR: something else\n", ""),
        ("cobalt", -1, "node count out of realistic range\n", "job.nodes"),
        ("cobalt", -1, "qsub: error: no such option: --nosuchoption\n", "job.directives"),
        ("lsf", 0, "Too many processors requested. Job not submitted.", "job.cpus"),
        ("lsf", 0, "Not a member of the specified project. Job not submitted.", "job.account"),
        ("lsf", 0, "Bad GPU requirement syntax. Job not submitted.", "job.gpu_request"),
        ("htcondor", 0, "ERROR: Parse error in expression: RequestMemory = lots\n", "job.memory"),
        ("htcondor", 0, "ERROR: request_gpus is more than any machine has\n", "job.gpus"),
        ("torque", 0, "qsub: submit error (Invalid account)\n", "job.account"),
        ("torque", 0, "qsub: submit error (Unknown resource type  tpus)\n", "job.gpu_request"),
        ("torque", 0, "qsub: submit error (Bad GID for job execution MSG=group root not allowed)\n",
         "group_list"),
        ("torque", 0, "qsub: submit error (Job exceeds queue resource limits MSG=cannot satisfy"
         " queue max walltime requirement; Job violates queue and/or server resource limits)\n",
         "job.walltime"),
        ("moab", 0, "ERROR:    invalid queue specified", ""),
        ("sge", 0, 'Unable to run job: unknown resource "tpu"\nExiting.\n', "job.gpu_request"),
        ("pbs", 0, "qsub: Unknown queue\n", "qstat -Q"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_change(system: str, line: int, err: str, fix: str) -> None:
    with pytest.raises(BackendError) as caught:
        submitted(system, 2, 1, "", err)
    assert not isinstance(caught.value, BackendUnavailable)
    told = err.strip().splitlines()[line].removeprefix("qsub: ").removeprefix("Unable to run job: ")
    assert told.removeprefix("ERROR:").strip() in caught.value.message or "No such file" in told
    assert fix in caught.value.hint
    assert bool(caught.value.hint) == bool(fix)
    assert caught.value.detail == f"$ submit\nexit code 1\n{err.strip()}"


@pytest.mark.parametrize(
    "system,out,err,code",
    [
        ("cobalt", "", "", 0),
        ("lsf", LSF_LIST, "", 0),
        ("lsf", "", "No job found\n", 255),
        ("lsf", "No unfinished job found\n", "", 0),
        ("lsf", f"LSF is processing your request.\n{LSF_LIST}", "", 0),
        *[("htcondor", out, "", 0)
          for out in ("", "\n", "[]", "[\n]\n", "-- Schedd: ap1\n[\n]\n")],
        ("torque", "", "", 153),
    ],
)  # fmt: skip
def test_an_empty_queue_is_an_answer(system: str, out: str, err: str, code: int) -> None:
    assert find_backend(system).parse_status(CommandResult(("list",), code, out, err)) == {}


@pytest.mark.parametrize(
    "system,out,err,code",
    [
        ("cobalt", "", "", 1),
        ("cobalt", "", "Failed to connect to queue manager\n", 1),
        ("cobalt", "", "Failed to connect to queue manager\n", 0),
        ("lsf", "", "LSF is down. Please wait ...\n", 255),
        ("lsf", LSF_LIST, "Cannot connect to LSF. Please wait ...\n", 255),
        ("lsf", "", "bjobs: illegal option -- json", 255),
        ("lsf", "", "", 0),
        ("lsf", '{"COMMAND":"bjobs","JOBS":2,"RECORDS":[{"JOBID"', "", 0),
        ("lsf", '{"RECORDS": "none"}', "", 0),
        ("htcondor", "", "\n-- Failed to fetch ads from: <10.0.0.1:9618> : ap1\nSECMAN:2007:\n", 1),
        ("htcondor", "[]", "", 1),
        ("htcondor", '[{"ClusterId": 12, "Pro', "", 0),
        ("htcondor", "nothing", "", 0),
        ("torque", "<Data><Job>", "", 0),
        ("torque", "", "cannot connect to server srv", 111),
    ],
)
def test_no_answer_is_never_an_empty_queue(system: str, out: str, err: str, code: int) -> None:
    backend, result = find_backend(system), CommandResult(("list",), code, out, err)
    for parse in (backend.parse_status, backend.parse_history):
        if parse.__name__ not in backend.lacks and backend.history(["1"]) is not None:
            with pytest.raises(BackendUnavailable):
                parse(result)
    with pytest.raises(BackendUnavailable):
        backend.parse_status(result)


@pytest.mark.parametrize(
    "system,out,id",
    [
        ("slurm", "7_0|RUNNING|None|\n8_0|RUNNING|None|n1|N/A|N/A|0|gpc-abc123-1\n", "7_0"),
        ("pbs", '{"Jobs": {"7.login1": null, "8.login1": {"job_state": "R"}}}', "7.login1"),
        ("oar", '{"7": [], "8": {"state": "Running"}}', "7"),
        (
            "lsf",
            '{"RECORDS": [{"JOBID": "7", "JOBINDEX": "1", "START_TIME": {}}, {"JOBID": "8[1]"}]}',
            "7[1]",
        ),
        (
            "htcondor",
            '[{"ClusterId": 7, "ProcId": 0, "ExitCode": []}, {"ClusterId": 8, "ProcId": 0}]',
            "7.0",
        ),
        (
            "sge",
            "<job_info><job_list><JB_job_number>7</JB_job_number></job_list>"
            "<job_list><JB_job_number>8</JB_job_number></job_list></job_info>",
            "7",
        ),
        (
            "torque",
            "<Data><Job><Job_Id>7.s</Job_Id></Job><Job><Job_Id>8.s</Job_Id></Job></Data>",
            "7.s",
        ),
    ],
)
def test_a_job_whose_record_cannot_be_read_is_listed(system: str, out: str, id: str) -> None:
    backend = find_backend(system)
    found = backend.parse_status(CommandResult(tuple(backend.status("me", ())), 0, out))
    assert (found[id].id, found[id].state, len(found)) == (id, JobState.UNKNOWN, 2)


@pytest.mark.parametrize(
    "system,out",
    [
        ("lsf", '[site] note\n{"RECORDS": [{"JOBID": "7[1]"}]}'),
        ("oar", '[site] note\n{"7": {}}'),
        ("oar", 'note: {"7": {}}'),
        ("htcondor", '{site} note\n[{"ClusterId": 7, "ProcId": 0}]'),
        ("kubernetes", '[site] note\n{"items": [{"metadata": {"name": "p"}}]}'),
    ],
)
def test_notes_before_an_answer_may_begin_with_a_bracket(system: str, out: str) -> None:
    result = CommandResult(("list",), 0, out)
    assert len(find_backend(system).parse_status(result)) == 1


def test_lsf_has_no_jobs_whatever_else_it_prints_in_brackets() -> None:
    result = CommandResult(("bjobs",), 0, "", "{site} note\nNo unfinished job found\n")
    assert find_backend("lsf").parse_status(result) == {}


@pytest.mark.parametrize(
    "system,out",
    [
        ("lsf", '{"RECORDS": [{"JOBID": "7[1]"}, null]}'),
        ("lsf", '{"RECORDS": [{"JOBID": "7[1]"}, {"JOBID": "8", "JOB_NAME": "gpc-abc123-1"}]}'),
        ("htcondor", '[{"ClusterId": 7, "ProcId": 0}, {"ClusterId": "8"}]'),
        ("sge", "<job_info><job_list><JB_job_number>7</JB_job_number></job_list><job_list>"
         "<JB_name>gpc-abc123-1</JB_name></job_list></job_info>"),
        ("torque", "<Data><Job><Job_Id>7.s</Job_Id></Job><Job><comment>R</comment></Job></Data>"),
        ("moab", '<Data><queue><job JobID="7" State="Idle"/><job State="Running"/></queue></Data>'),
        ("cobalt", "JobID: 7\nState: running\n\nJobID: 8x\nState: running\n"),
        ("kubernetes", '{"items": [{"metadata": {"name": "p"}}, {"status": {}}]}'),
    ],
)  # fmt: skip
async def test_a_record_in_which_no_id_is_found_proves_no_absence(system: str, out: str) -> None:
    class Prints:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            return CommandResult(tuple(argv), 0, out)

    queue = Queue(find_backend(system), Prints())
    [id] = await queue.poll(["7"], []) or {}
    assert await queue.poll(["9"]) is None
    assert queue.fix.endswith("listed a job in a form that cannot be read.")
    assert await queue.poll(["7"], [], ["gpc-abc123-9_0"]) is None
    assert await queue.poll([id], [id]) is not None
