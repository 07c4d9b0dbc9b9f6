"""Which release is meant: by its id, the beginning of it, or as the one before."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import SERVING


def one_of(text: str, ids: Sequence[str]) -> str:
    """The id that is meant: itself, or the only one that begins so.

    Raises:
        Failure: `UNKNOWN_RELEASE` when none begins so, or several do.
    """
    found = [text] if text in ids else [one for one in ids if one.startswith(text)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(Cause.UNKNOWN_RELEASE, text)
    names = ", ".join(found[:10])
    raise Failure(
        Cause.UNKNOWN_RELEASE,
        f"{text}: {len(found)} releases begin so",
        suggestion=f"Name one of them: {names}{' and others' if len(found) > 10 else ''}.",
    )


def last_two(name: str, rows: Sequence[ReleaseRow]) -> tuple[Release, Release]:
    """The two newest releases of a model that have a record, the older one first.

    Args:
        name: The model.
        rows: Its releases, newest first.

    Raises:
        Failure: `UNKNOWN_RELEASE` when there are not two.
    """
    found = [row.release for row in rows if row.release]
    if len(found) < 2:
        detail = f"{name} has {len(found)} releases with a record; two are needed"
        raise Failure(Cause.UNKNOWN_RELEASE, detail)
    return found[1], found[0]


def rollback_target(name: str, rows: Sequence[ReleaseRow], to: str = "") -> Release:
    """The release to go back to: the one named, else the last one before what serves that ran.

    Where nothing serves the name, it is the last one that ran.

    Args:
        name: The model.
        rows: Its releases, newest first.
        to: Id of one of them, or how it begins; empty = the one before.

    Raises:
        Failure: `CANNOT_ROLL_BACK` when it never ran, is of another model, or there is none;
            `UNKNOWN_RELEASE` when the model is not known.
    """
    if not rows:
        raise Failure(Cause.UNKNOWN_RELEASE, f"no model is named {name}")
    if to:
        return _named(name, rows, to)
    serving = next((row.number for row in rows if row.state in SERVING), None)
    earlier = (row for row in rows if serving is None or row.number < serving)
    found = next((row.release for row in earlier if row.release and row.release.ran), None)
    if found is None:
        raise Failure(Cause.CANNOT_ROLL_BACK, f"no earlier release of {name} ever ran")
    return found


def _named(name: str, rows: Sequence[ReleaseRow], to: str) -> Release:
    ids = [row.id for row in rows]
    if not any(one.startswith(to) for one in ids):
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{to} is no release of {name}")
    chosen = one_of(to, ids)
    row = next(row for row in rows if row.id == chosen)
    if row.release is None or not row.release.ran:
        why = row.cause or "it has no record that can be read"
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{row.id} never ran ({row.state}: {why})")
    return row.release
