"""``setup``: write profiles from what the batch systems of this host report."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.errors import BackendUnavailable, GpuClusterError, InvalidInput
from ...core.serialize import to_json
from ...core.site import Site
from ..arguments import Parser, absolute_python
from ..output import Block, Outcome, Session, Table, Text

if TYPE_CHECKING:
    from ...setup import Proposal, System

ALLOCATION = "this-allocation"


def add_setup(parser: Parser) -> None:
    """Add the arguments of ``setup``."""
    add = parser.add_argument
    add("queues", metavar="QUEUE", nargs="*", help="only these queues or partitions; default: all")
    add("--account", default="", help="the account that is charged, if you have several")
    add("--python", metavar="PATH", default="", help="the Python that the clusters run in")
    parser.flag("--print", "print the profiles and save nothing")
    parser.flag("--yes", "save without asking; an account is never chosen")
    add("--for", dest="audience", choices=("me", "site"), default="me",
        help="site: print profiles with limits and locks for all users; saves nothing")  # fmt: skip


def run_setup(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Ask the batch systems, show the profiles, and save those that the user wants."""
    from ...setup import propose

    python = absolute_python(arguments.python) if arguments.python else session.python
    site = arguments.audience == "site"
    shows = arguments.print or site or (arguments.json and not arguments.yes)
    account, queues = arguments.account, arguments.queues
    systems = propose(python, account=account, queues=queues, for_site=site, saves=not shows)
    if not systems:
        return _in_allocation(arguments, session)
    if arguments.queues and not any(
        each.proposals or each.closed or each.error for each in systems
    ):
        raise InvalidInput(f"No queue with GPUs is called {' or '.join(arguments.queues)}.")
    if not shows:
        systems = [_with_account(each, arguments, session) for each in systems]
    usable = [each for system in systems for each in system.proposals if each.usable]
    if shows:
        parts = [f"# {each.name}.yaml\n{each.text}" for each in usable]
        parts += [system.template for system in systems if system.template]
        text = Text("\n".join(parts), code=True)
        return Outcome(_document(systems, {}, []), (text, *_remarks(systems)), _silence(systems))
    blocks: list[Block] = [_table(usable), *_remarks(systems)]
    texts = {each.name: each.text for each in usable}
    return _saved(texts, arguments, session, blocks, systems)


def _in_allocation(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Write the profile of the job that this host is in, which has no submit commands."""
    from ...setup import allocation

    if not (text := allocation()):
        hint = "Log in to a host that has them, or load the module that brings them."
        raise InvalidInput("No batch system has its commands on this host.", hint=hint)
    words = "This node runs a batch job and has no commands to submit others."
    blocks: list[Block] = [Text(words), Text(text, code=True)]
    if arguments.print:
        return Outcome(_document([], {}, []), tuple(blocks))
    return _saved({ALLOCATION: text}, arguments, session, blocks, [])


def _with_account(system: System, arguments: argparse.Namespace, session: Session) -> System:
    """Put the user's account into the proposals; it is never chosen for the user."""
    account, proposals = arguments.account, system.proposals
    names = dict.fromkeys(name for each in proposals for name in each.choices.accounts)
    if account and names and account not in names:
        raise InvalidInput(f"No queue accepts the account {account!r}.", hint=_listed(names))
    undecided = [each for each in proposals if each.usable and each.undecided]
    if undecided and not account:
        offered = system.offered if system.offered in names else ""
        enter = f" [Enter: {offered}]" if offered else ""
        answer = "" if arguments.yes else session.ask(f"Account ({', '.join(names)}){enter}: ")
        account = (answer or "").strip() or (offered if answer is not None else "")
        if account not in names or (arguments.yes and not arguments.account):
            found = f" Your environment names {offered}." if offered else ""
            words = "You have several accounts. Name the one that is charged."
            hint = f"--account NAME; {_listed(names)}{found}"
            raise InvalidInput(words, hint=hint, detail="account")
    return replace(system, proposals=tuple(each.with_account(account) for each in proposals))


def _saved(
    texts: dict[str, str],
    arguments: argparse.Namespace,
    session: Session,
    blocks: list[Block],
    systems: Sequence[System],
) -> Outcome:
    """Save the profiles that the user wants; ask for each, unless told not to."""
    from ...setup import save

    saved: dict[str, str] = {}
    errors: list[GpuClusterError] = [*_silence(systems)]
    for name, text in texts.items():
        if not arguments.yes:
            session.note(f"\n{text}")
        if arguments.yes or session.agrees(f"Save {name}?"):
            saved[name] = str(save(name, text))
    following = [
        f"{session.program} {command}"
        for name in [*saved][:1]
        for command in ([f"doctor {name} --job"] if name != ALLOCATION else []) + [f"start {name}"]
    ]
    if saved:
        blocks.append(Text("\n".join(saved.values()), code=True, title="Saved"))
        blocks.append(Text("\n".join(following), code=True, title="Next"))
    elif texts and not errors:
        errors.append(InvalidInput("Nothing was saved.", hint="Add --yes to save without asking."))
    document = _document(systems, saved, following)
    return Outcome(document, tuple(blocks), tuple(errors), exit_code=0 if saved else 1)


def _table(usable: Sequence[Proposal]) -> Table:
    rows = tuple(
        (
            each.name,
            str(queue.gpus),
            queue.gpu_type or "?",
            str(queue.cpus_per_gpu or "?"),
            each.choices.account or ", ".join(each.choices.accounts) or "-",
            each.rehearsal.found or "not checked by the batch system",
        )
        for each in usable
        for queue in each.queues[:1]
    )
    headings = ("PROFILE", "GPUS/NODE", "TYPE", "CORES/GPU", "ACCOUNT", "CHECK")
    return Table(headings, rows, empty="No queue with GPUs is open to you.")


def _remarks(systems: Sequence[System]) -> Iterator[Block]:
    """Yield what was left out, with the reason."""
    lines = []
    for system in systems:
        for each in system.proposals:
            if each.exists:
                lines.append(f"{each.name}: there is a profile of this name; it stays as it is")
            elif not each.usable:
                lines.append(f"{each.queues[0].name}: {each.rehearsal.found}")
            else:
                refusals = each.refused.items()
                lines += [f"{each.name}: not with account {name}: {why}" for name, why in refusals]
        lines += [f"{queue}: {reason}" for queue, reason in system.closed.items()]
        if system.template:
            lines.append(
                f"{system.title}: this version cannot read its answers; --print has a template"
            )
    if lines:
        yield Text("\n".join(lines), title="Left out")


def _silence(systems: Sequence[System]) -> tuple[BackendUnavailable, ...]:
    """Return the errors of silent systems; those beside one that answered are only remarks."""
    answered = any(system.proposals or system.closed for system in systems)
    errors = (system.error for system in systems if system.error and not answered)
    return tuple(BackendUnavailable(error) for error in errors)


def _listed(names: Sequence[str] | dict[str, None]) -> str:
    return f"yours: {', '.join(names)}."


def _document(
    systems: Sequence[System], saved: dict[str, str], following: Sequence[str]
) -> dict[str, Any]:
    def described(each: Proposal) -> dict[str, Any]:
        # The site is the same for all.
        facts: dict[str, Any] = to_json(replace(each, site=Site()))
        return facts | {"text": each.text, "usable": each.usable}

    listed = [
        to_json(system) | {"proposals": [described(each) for each in system.proposals]}
        for system in systems
    ]
    return {"systems": listed, "saved": saved, "next": list(following)}
