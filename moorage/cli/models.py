"""`moorage models`: list, prune and verify the models in the hosts' stores."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.store_cleanup import WORK_SECONDS, Store, prune, stores_of
from moorage.cli.commands import Commands
from moorage.cli.options import AsJson, FleetFile, fleet_of, open_ledger
from moorage.cli.output import dump, err, out, print_table
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.units import human_bytes, parse_bytes
from moorage.operations.stored_models import (
    Need,
    Stored,
    StoredState,
    shared_needs,
    sharing_hosts,
    to_prune,
    with_shared_users,
)

LIST_SECONDS = 60.0
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
HEADER = ("host", "model", "revision", "size", "last deployed", "used by")

commands = Commands(
    help="Show the models in the stores; `prune` removes unused ones, `verify` checks their files."
)

OneHost = Annotated[str | None, typer.Option("--host", help="Only this host.")]


@commands.callback(invoke_without_command=True)
def models(
    context: typer.Context, fleet: FleetFile = None, host: OneHost = None, as_json: AsJson = False
) -> None:
    """Show the stored models of every host: revision, size, last deploy, and users."""
    if context.invoked_subcommand is None:
        _print(_listing(fleet, host).chosen, as_json=as_json)


def list_models(fleet: FleetFile = None, host: OneHost = None, as_json: AsJson = False) -> None:
    """Show the stored models of every host, as `moorage models` does."""
    _print(_listing(fleet, host).chosen, as_json=as_json)


@commands.command("prune")
def prune_stores(
    fleet: FleetFile = None,
    host: OneHost = None,
    keep: Annotated[
        str | None, typer.Option("--keep", help="Bytes that each host may keep, such as 500GiB.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", help="Remove models that were not deployed for this time, such as 30d."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Remove the models; without it, only list them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove unused models, the least recently deployed first.

    Exits with 8 when one of them stays, or a host does not answer.
    """
    if keep is None and older_than is None:
        raise Failure(Cause.BAD_SETTING, "pass --keep 500GiB or --older-than 30d")
    most, age = _bytes(keep), _seconds(older_than)
    listing = _listing(fleet, host)
    chosen = to_prune(listing.chosen, keep=most, older_than=age, now=time.time())
    answering = not listing.silent & {store.host for store in listing.stores}
    removed, all_gone = _prune(listing, chosen) if yes else (chosen, answering)
    _print(removed, as_json=as_json, empty="No unused model is over this limit.")
    if not as_json:
        size = human_bytes(sum(one.bytes for one in removed))
        out.print(f"{size} freed" if yes else f"{size} would be freed; pass --yes to remove")
    if not all_gone:
        raise typer.Exit(ExitCode.MACHINE)


@commands.command()
def verify(fleet: FleetFile = None, host: OneHost = None, as_json: AsJson = False) -> None:
    """Compare every complete model with its checksums. Damaged files are downloaded again later."""
    stores = _chosen_stores(stores_of(fleet_of(fleet), Settings()), host)
    answers = _ask_all(stores, _damage, WORK_SECONDS)
    checked: list[dict[str, Any]] = [
        {"host": store.host, "path": path, "damaged": bad}
        for store, answer in answers
        for path, bad in dict(answer or {}).items()
    ]
    if as_json:
        dump(checked)
    else:
        rows = [(one["host"], one["path"], ", ".join(one["damaged"]) or "none") for one in checked]
        print_table(("host", "model", "damaged files"), rows, "no models are stored")
    if any(one["damaged"] for one in checked):
        raise typer.Exit(ExitCode.SOURCE)
    if len(answers) < len(stores):
        raise typer.Exit(ExitCode.MACHINE)


class _Listing(NamedTuple):
    """The chosen stores, the models in all stores, and the hosts that did not answer.

    Where hosts share a store, another host may use a model, too.
    """

    stores: tuple[Store, ...]
    models: tuple[Stored, ...]
    silent: frozenset[str]

    @property
    def chosen(self) -> list[Stored]:
        hosts = {store.host for store in self.stores}
        return [one for one in self.models if one.host in hosts]


def _listing(fleet: Path | None, host: str | None) -> _Listing:
    stores = stores_of(fleet_of(fleet), Settings())
    chosen = _chosen_stores(stores, host)
    needed = open_ledger().releases.needs()
    answers = _ask_all(stores, lambda store: store.stored(needed), LIST_SECONDS, required=chosen)
    silent = {store.host for store in stores} - {store.host for store, _ in answers}
    models = [one for _, found in answers for one in found]
    return _Listing(chosen, with_shared_users(models, needed, silent), frozenset(silent))


def _chosen_stores(stores: tuple[Store, ...], host: str | None) -> tuple[Store, ...]:
    chosen = tuple(store for store in stores if host in (None, store.host))
    if not chosen:
        names = ", ".join(store.host for store in stores)
        raise Failure(Cause.BAD_SETTING, f"unknown host {host}; known: {names}")
    return chosen


def _damage(store: Store) -> Any:
    complete = [one.path for one in store.stored(()) if one.state == StoredState.COMPLETE]
    return store.ask("verify", complete)


def _prune(listing: _Listing, chosen: Sequence[Stored]) -> tuple[list[Stored], bool]:
    """Remove models; returns the removed ones, and whether none stays on any of the hosts."""
    stays: list[Stored] = []

    def note(one: Stored, why: str) -> None:
        stays.append(one)
        err.print(f"{one.path} stays on {one.host}: {why}", markup=False, highlight=False)

    def work(store: Store) -> tuple[Stored, ...]:
        own = [one for one in chosen if one.host == store.host]
        sharing = sharing_hosts(own, listing.models) | listing.silent

        def needs_now() -> Sequence[Need]:
            return shared_needs(open_ledger().releases.needs(), store.host, sharing)

        return prune(store, own, needs_now, note) if own else ()

    answering = [store for store in listing.stores if store.host not in listing.silent]
    answers = _ask_all(answering, work, WORK_SECONDS)
    removed = [one for _, gone in answers for one in gone]
    return removed, not stays and len(answers) == len(listing.stores)


def _ask_all(
    stores: Sequence[Store],
    work: Callable[[Store], Any],
    seconds: float,
    required: Sequence[Store] = (),
) -> list[tuple[Store, Any]]:
    """The stores that answer, with their answers; prints the hosts that do not.

    One of the `required` stores has to answer; default = all.
    """
    answers = list(zip(stores, map_parallel(work, stores, seconds), strict=True))
    errors = [(store, answer) for store, answer in answers if isinstance(answer, Exception)]
    for store, error in errors:
        reason = error.detail if isinstance(error, Failure) else repr(error)
        err.print(f"skipped {store.host}: {reason}", markup=False, highlight=False)
    required = required or stores
    lost = [error for store, error in errors if store in required]
    if len(lost) == len(required):
        raise lost[0]
    return [(store, answer) for store, answer in answers if not isinstance(answer, Exception)]


def _print(found: Sequence[Stored], *, as_json: bool, empty: str = "") -> None:
    if as_json:
        return dump(found)
    empty = empty or "No model is stored. `moorage pull SOURCE` downloads one."
    rows = [
        (
            one.host,
            one.source + (f" ({one.state})" if one.state != StoredState.COMPLETE else ""),
            one.revision[:18],
            human_bytes(one.bytes),
            f"{datetime.fromtimestamp(one.used, UTC):%Y-%m-%d %H:%M}",
            ", ".join(dict.fromkeys(one.used_by)) or "nobody",
        )
        for one in found
    ]
    return print_table(HEADER, rows, empty)


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise Failure(Cause.BAD_SETTING, f"--keep {text}: write {error}") from None


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text)
    if not match:
        raise Failure(Cause.BAD_SETTING, f"--older-than {text}: write a time such as 30d or 12h")
    return int(match[1]) * UNITS[match[2]]
