"""`moorage ledger`: back up, restore, check and migrate the ledger."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from moorage.adapters.ledger.check import problems_of_content, problems_of_file
from moorage.adapters.ledger.copies import back_up
from moorage.adapters.ledger.copies import restore as restore_ledger
from moorage.adapters.ledger.database import migrate_database, parsed_url, shown_url
from moorage.adapters.ledger.tables import NEWEST
from moorage.adapters.ledger.traces import database_file
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.interruption import heard_by
from moorage.cli.options import AsJson, Yes, require_consent
from moorage.cli.output import dump, print_answer, say
from moorage.common.failures import ExitCode

commands = Commands(
    no_args_is_help=True, help="The ledger: back it up, restore a backup, check it, migrate it."
)


@commands.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Copy the ledger into a file while flows run."""
    with interrupted_in_order():
        back_up(Settings().ledger, file)
    content = {"ledger": _shown(), "backup": str(file)}
    print_answer(content, f"Copied {_shown()} to {file}", as_json=as_json)


@commands.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A backup file.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Restore the ledger from a backup; the old ledger is kept next to it.

    Deploys and retirements since the backup are not in it: check `moorage status` afterwards.
    """
    if there := _file():
        require_consent(f"Replace {there} with {file}?", yes=yes, as_json=as_json)
    with interrupted_in_order():
        kept = restore_ledger(Settings().ledger, file, datetime.now(UTC))
    if as_json:
        return dump({"ledger": _shown(), "restored": str(file), "kept": str(kept or "") or None})
    say(f"Restored {_shown()} from {file}")
    if kept:
        say(f"The old ledger is in {kept}")
    return say("Changes since the backup are not in it: check `moorage status`.", style="dim")


@commands.command()
def check(as_json: AsJson = False) -> None:
    """Check the ledger: its file, its schema, and its releases."""
    there = _file()
    problems = problems_of_file(there) if there else ()
    problems = problems or problems_of_content(Settings().ledger)
    text = "\n".join(f"- {problem}" for problem in problems) or f"{_shown()} is sound"
    print_answer({"ledger": _shown(), "problems": list(problems)}, text, as_json=as_json)
    if problems:
        raise typer.Exit(ExitCode.MACHINE)


@commands.command()
def migrate(as_json: AsJson = False) -> None:
    """Migrate the ledger to this version: older ones cannot open it any more.

    Only a ledger on a server needs it; `moorage serve` does it, too.
    """
    migrate_database(Settings().ledger)
    content = {"ledger": _shown(), "schema": NEWEST}
    print_answer(content, f"{_shown()} has the schema {NEWEST}", as_json=as_json)


def _file() -> Path | None:
    """The file of the ledger; None for PostgreSQL, or before the first deploy."""
    path = database_file(parsed_url(Settings().ledger))
    return path if path and path.exists() else None


@contextmanager
def interrupted_in_order() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on the first signal, so the block cleans up; ignore later ones."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def end(*_: object) -> NoReturn:
        for number in heard:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    with heard_by(end, heard):
        yield


def _shown() -> str:
    return shown_url(parsed_url(Settings().ledger))
