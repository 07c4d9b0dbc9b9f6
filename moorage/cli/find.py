"""Finding the release that a person means."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.operations.history.rollback import one_of
from moorage.releases.release import Release, ReleaseRow


def open_ledger() -> Ledger:
    """The ledger of this machine's settings."""
    return Ledger(Settings().ledger)


def release_of(ledger: Ledger, text: str) -> ReleaseRow:
    """The release of that id, what serves a model of that name, or the only id that begins so.

    Raises:
        Failure: `UNKNOWN_RELEASE`.
    """
    releases = ledger.releases
    named = releases.running(text) or next(iter(releases.of_model(text)), None)
    if named:
        return named
    ids = releases.ids(text) if text else []
    if not ids:
        raise unknown_release(ledger, text, f"no model or release is named '{text}'")
    return releases.get(one_of(text, ids))


def unknown_release(ledger: Ledger, name: str, detail: str) -> Failure:
    """That a name stands for nothing; it suggests the model whose name is nearest."""
    models = [row.model for row in ledger.releases.latest()]
    near = [one for one in get_close_matches(name, models, n=1) if one != name]
    hint = f"Did you mean '{near[0]}'? `moorage status` lists the models." if near else None
    return Failure(Cause.UNKNOWN_RELEASE, detail, suggestion=hint)


def releases_of(ledger: Ledger, name: str) -> list[ReleaseRow]:
    """All releases of a model, newest first.

    Raises:
        Failure: `UNKNOWN_RELEASE` when there are none.
    """
    found = ledger.releases.of_model(name)
    if not found:
        raise unknown_release(ledger, name, f"no model is named '{name}'")
    return found


def record_of(ledger: Ledger, text: str) -> Release:
    """The record of a release.

    Raises:
        Failure: `UNKNOWN_RELEASE`, also when it has no record that this version can read.
    """
    row = release_of(ledger, text)
    if row.release is None:
        why = "another version wrote its record" if row.foreign_record else "it has no record"
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} is {row.state}; {why}")
    return row.release


def row_json(row: ReleaseRow) -> dict[str, Any]:
    """A release as data, without its record."""
    return row.model_dump(mode="json", exclude={"release"})
