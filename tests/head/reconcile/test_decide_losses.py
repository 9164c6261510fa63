"""Stories of workers that die, submissions that go wrong and listings that lie."""

from __future__ import annotations

from jupyter_gpucluster.core.cluster import Phase, Policy
from jupyter_gpucluster.core.job import JobState, JobStatus
from jupyter_gpucluster.head.reconcile import model
from jupyter_gpucluster.head.reconcile.apply_status import ANSWER_GRACE
from jupyter_gpucluster.head.reconcile.model import DEATHS_WINDOW, Answer, Cancel, Finish, Submit

from ..world import Play, finished, of, ready, unanswered, waiting

ONE, TWO, THREE = "gpc-abc123-1", "gpc-abc123-2", "gpc-abc123-3"


# Losses.


def test_a_lost_worker_is_replaced_and_counted() -> None:
    play = ready(2)
    play.die(f"{ONE}_1")
    assert play.step() == [Submit(TWO, 1)]
    assert play.record.replaced == 1
    play.step()
    assert play.words == "1 of 2 workers ready, 1 waiting"
    play.connect()
    play.step()
    assert play.words == "2 of 2 workers ready"


def test_a_scale_up_after_a_death_is_not_counted_as_a_replacement() -> None:
    play = ready(2)
    play.die(f"{ONE}_1")
    play.step()
    play.desired = 5
    assert play.step() == [Submit(THREE, 3)]
    assert play.record.replaced == 1


def test_the_cause_of_a_death_is_kept_and_told() -> None:
    play = ready(1)
    play.log[f"{ONE}_0"] = "ModuleNotFoundError: No module named 'cupy'"
    play.die(f"{ONE}_0")
    play.step()
    assert play.job(f"{ONE}_0").cause == "ModuleNotFoundError: No module named 'cupy'"
    assert play.job(f"{ONE}_0").exit_code == 1


def test_a_signal_that_the_job_s_script_told_is_told_in_words() -> None:
    play = ready(1)
    play.die(f"{ONE}_0", code=137)
    play.step()
    cause = "Its worker was killed by signal 9, as when memory runs out."
    assert play.job(f"{ONE}_0").cause == cause


def test_it_is_degraded_while_all_its_workers_are_lost() -> None:
    play = ready(1)
    play.die(f"{ONE}_0")
    play.step()
    play.step()
    assert play.record.phase is Phase.DEGRADED


def test_it_is_degraded_while_a_worker_is_disconnected_from_its_running_job() -> None:
    play = ready(2)
    del play.workers[f"{ONE}_0"]
    assert play.step() == []
    assert play.record.phase is Phase.DEGRADED
    assert play.words == "1 of 2 workers ready, 1 lost, being replaced"


def test_more_deaths_than_the_policy_allows_end_a_cluster_without_survivors() -> None:
    play = Play(1, policy=Policy(replacements=2))
    for number in (1, 2, 3):
        play.get_ready()
        assert play.record.phase not in (Phase.STOPPING, Phase.FAILED)
        name = f"gpc-abc123-{number}_0"
        play.log[name] = "ImportError: nothing works"
        play.die(name)
    actions = play.step()
    assert finished(actions)
    assert not of(Submit, actions)
    assert play.record.phase is Phase.FAILED
    assert play.record.reason == "3 workers failed within 10 minutes: ImportError: nothing works"
    assert play.record.ended == play.now


def test_more_deaths_than_the_policy_allows_leave_survivors_alone() -> None:
    play = ready(2, policy=Policy(replacements=0))
    play.die(f"{ONE}_1")
    for _ in range(3):
        assert play.step() == []
    assert play.record.phase is Phase.DEGRADED
    assert play.record.reason.endswith("No more are started for now.")
    assert play.words == "1 of 2 workers ready, 1 lost"


def test_it_mends_itself_again_once_deaths_are_long_ago() -> None:
    play = ready(2, policy=Policy(replacements=0))
    play.die(f"{ONE}_1")
    play.step()
    assert play.step(DEATHS_WINDOW + 1) == [Submit(TWO, 1)]
    assert play.record.reason == ""


def test_a_target_that_the_survivors_meet_clears_the_complaint() -> None:
    play = ready(2, policy=Policy(replacements=0))
    play.die(f"{ONE}_1")
    play.step()
    play.desired = 1
    assert play.step() == []
    assert play.record.reason == ""
    assert play.record.phase is Phase.RUNNING


def test_a_client_s_restart_costs_nothing_of_the_budget() -> None:
    play = Play(2, policy=Policy(replacements=0))
    for number in (1, 2, 3):
        play.get_ready()
        keys = [f"gpc-abc123-{number}_{task}" for task in (0, 1)]
        play.restarted.update(keys)
        for name in keys:
            play.die(name, JobState.DONE, 0)
    assert play.step() == [Submit("gpc-abc123-4", 2)]
    assert play.record.replaced == 0


# Submissions that go wrong.


def test_a_refused_submission_ends_a_cluster_that_has_nothing_else() -> None:
    play = unanswered(2)
    play.answers = [Answer(ONE, refusal="Invalid account.")]
    assert play.step() == [Finish()]
    assert play.record.phase is Phase.FAILED
    assert play.record.reason == "Invalid account."


def test_a_refused_scale_up_does_not_end_a_cluster_that_works() -> None:
    play = ready(2, policy=Policy(replacements=1))
    play.deaf = True
    play.desired = 4
    assert play.step() == [Submit(TWO, 2)]
    play.answers = [Answer(TWO, refusal="Quota exceeded.")]
    assert play.step() == []
    assert play.record.stop_requested is None
    assert "Quota exceeded." in play.record.reason
    assert play.words == "2 of 4 workers ready, 2 lost"


def test_a_refusal_does_not_deny_jobs_that_the_queue_lists() -> None:
    play = unanswered(1)
    play.queue.accept(ONE, 1)
    play.step()
    play.answers = [Answer(ONE, refusal="Socket timed out.")]
    assert play.step() == []
    assert play.alive() == [f"{ONE}_0"]


def test_a_lost_answer_is_made_good_by_the_marks_in_the_listing() -> None:
    play = unanswered(12)
    ids = play.queue.accept(ONE, 12)
    play.answers = [Answer(ONE)]
    assert play.step() == []
    assert [job.id for job in play.record.jobs] == list(ids)


def test_an_answer_after_the_listing_has_named_the_jobs_changes_nothing() -> None:
    play = unanswered(1)
    [id] = play.queue.accept(ONE, 1)
    play.queue.change(id, JobState.RUNNING)
    play.step()
    play.answers, play.silent = [Answer(ONE, (id,))], True
    play.step()
    assert play.job(f"{ONE}_0").state is JobState.RUNNING


def test_a_lost_submission_is_sent_again_under_a_new_mark_only_after_the_grace() -> None:
    play = unanswered(1)
    play.answers = [Answer(ONE)]
    assert play.step(ANSWER_GRACE - 10) == []
    assert play.step(11) == []
    assert play.step() == [Submit(TWO, 1)]
    assert play.job(f"{ONE}_0").cause


def test_silence_does_not_lead_to_a_second_submission() -> None:
    play = Play(1)
    play.deaf = play.silent = True
    play.step()
    assert play.step(10 * ANSWER_GRACE) == []
    assert play.step(10 * ANSWER_GRACE) == []


def test_a_submission_accepted_after_it_was_given_up_is_taken_and_the_surplus_cancelled() -> None:
    play = unanswered(1)
    play.step(ANSWER_GRACE + 1)
    assert play.step() == [Submit(TWO, 1)]
    [late] = play.queue.accept(ONE, 1)
    [new] = play.queue.accept(TWO, 1)
    play.answers = [Answer(TWO, (new,))]
    assert play.step() == [Cancel((new,))]
    assert play.job(f"{ONE}_0").id == late


def test_an_answer_that_comes_after_the_grace_brings_the_jobs_back() -> None:
    play = unanswered(1)
    play.step(ANSWER_GRACE + 1)
    play.step()
    [id] = play.queue.accept(ONE, 1)
    play.answers, play.silent = [Answer(ONE, (id,))], True
    play.step()
    assert f"{ONE}_0" in play.alive()


# Listings.


def test_no_answer_changes_nothing() -> None:
    play = ready(2)
    play.silent = True
    before = play.record
    for _ in range(5):
        assert play.step(1000.0) == []
    assert play.record == before


def test_a_job_is_gone_when_two_listings_lack_it_and_no_worker_of_it_is_connected() -> None:
    play = ready(1)
    play.queue.hidden.update(play.queue.jobs)
    assert play.step() == []
    assert play.step() == []
    play.workers.clear()
    assert play.step() == []
    assert play.step() == [Submit(TWO, 1)]


def test_one_listing_without_a_job_is_forgiven() -> None:
    play = ready(1)
    play.workers.clear()
    for _ in range(3):
        play.queue.hidden.update(play.queue.jobs)
        assert play.step() == []
        play.queue.hidden.clear()
        assert play.step() == []


def test_a_job_that_two_bad_listings_lacked_is_not_forgotten() -> None:
    play = waiting(1)
    play.queue.hidden.update(play.queue.jobs)
    play.step()
    play.step()
    play.queue.hidden.clear()
    actions = play.step()
    [cancel] = of(Cancel, actions)
    assert len(play.queue.live()) == 1
    assert cancel.ids[0] not in [status.id for status in play.queue.live()]


def test_a_requeued_job_counts_again() -> None:
    play = ready(1)
    [id] = play.queue.jobs
    play.queue.change(id, JobState.PREEMPTED)
    play.workers.clear()
    play.step()
    play.queue.change(id, JobState.PENDING)
    play.step()
    assert f"{ONE}_0" in play.alive()
    assert len(model.active(play.record)) == 1


def test_a_job_that_is_requeued_while_it_runs_says_why_and_keeps_the_time_it_held() -> None:
    play = ready(1)
    [id] = play.queue.jobs
    begun = play.now - 100.0
    play.queue.change(id, JobState.RUNNING, started=begun)
    play.step()
    play.queue.change(id, JobState.PENDING, started=None, reason="preempted by another user")
    play.workers.clear()
    play.step()
    assert f"{ONE}_0 waits again: preempted by another user" in play.notes
    assert (play.job(f"{ONE}_0").started, play.job(f"{ONE}_0").held) == (None, play.now - begun)
    play.step()
    assert play.notes == []


def test_an_unlisted_code_is_not_an_end() -> None:
    play = ready(1)
    for id in play.queue.jobs:
        play.queue.change(id, JobState.UNKNOWN)
    assert play.step() == []
    assert play.alive() == [f"{ONE}_0"]


def test_a_lost_job_that_accounting_knows_to_be_over_has_died_of_its_own_cause() -> None:
    play = unanswered(1, policy=Policy(replacements=3))
    over = JobStatus("7000_0", JobState.FAILED, ONE, 0, exit_code=3)
    play.log[f"{ONE}_0"] = "ModuleNotFoundError: dask"
    assert play.step(70, found={"7000_0": over}) == [Submit(TWO, 1)]
    job = play.job(f"{ONE}_0")
    assert (job.id, job.state, job.exit_code) == ("7000_0", JobState.FAILED, 3)
    assert "ModuleNotFoundError" in job.cause


def test_a_lost_job_that_accounting_knows_to_run_is_taken() -> None:
    play = unanswered(1)
    running = JobStatus("7000_0", JobState.RUNNING, ONE, 0)
    assert play.step(70, found={"7000_0": running}) == []
    assert play.job(f"{ONE}_0").id == "7000_0"
