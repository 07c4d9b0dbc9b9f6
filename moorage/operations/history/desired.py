"""What has to happen so that what is meant to run does run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from moorage.common.values import Value
from moorage.operations.history.changes import Change, spec_changes
from moorage.releases.release import ReleaseRow
from moorage.spec import ModelSpec


class Action(StrEnum):
    """What is done about one model."""

    CREATE = "create"
    CHANGE = "change"
    RESTORE = "restore"
    """It serves as its file says, but is not alive."""

    NOTED = "note"
    """It serves as its file says but for fields that do not change what runs; nothing restarts."""

    UNCHANGED = "unchanged"
    RETIRE = "retire"
    LEFT = "left"
    """It was applied from there and is not in the files any more; only `--prune` retires it."""


IDLE = frozenset({Action.UNCHANGED, Action.LEFT})
"""Actions that do nothing."""


class Intent(Value):
    """What is to be done about one model, and why.

    Attributes:
        model: Its name.
        action: What is to be done.
        release: What serves the name now; empty = nothing does.
        changes: Fields of its spec that differ from what serves.
        note: Why, where the fields do not say.
    """

    model: str
    action: Action
    release: str = ""
    changes: tuple[Change, ...] = ()
    note: str = ""


class Applied(Value):
    """What came of an intent.

    Attributes:
        model: Name of the model.
        action: What was to be done: `deploy`, `retire` or `note`.
        outcome: `done`, `unchanged`, `failed` or `skipped`.
        message: What happened, in words.
        release: The release that it made or ended; empty = none.
        cause: Of a failure.
        exit_code: Of the class of the failure; 0 = there was none.
        flow_run: Id of its flow run; empty = none came to be.
    """

    model: str
    action: str
    outcome: str
    message: str
    release: str = ""
    cause: str = ""
    exit_code: int = 0
    flow_run: str = ""


def intents(
    specs: Sequence[ModelSpec],
    running: Sequence[ReleaseRow],
    *,
    dead: Collection[str] = (),
    owner: str = "",
    prune: bool = False,
) -> tuple[Intent, ...]:
    """What is to be done: retirements first, for they make room, then each spec in its order.

    A model that serves and is in no file is only touched when it was applied from the very same
    set of files, as its record says: what was deployed by hand, or from elsewhere, is left alone.

    Args:
        specs: What is meant to run.
        running: What serves.
        dead: Ids of the releases that are recorded as running and are not alive.
        owner: The set of files; empty = it owns nothing.
        prune: Whether what it owns and does not hold any more is retired.
    """
    meant = {spec.name for spec in specs}
    owned = (row for row in running if owner and row.model not in meant and _owner(row) == owner)
    gone = tuple(_retirement(row, prune) for row in sorted(owned, key=lambda row: row.model))
    serving = {row.model: row for row in running}
    return (*gone, *(_intent(spec, serving.get(spec.name), dead) for spec in specs))


def _owner(row: ReleaseRow) -> str:
    return row.release.applied_from if row.release else ""


def _retirement(row: ReleaseRow, prune: bool) -> Intent:
    return Intent(
        model=row.model,
        action=Action.RETIRE if prune else Action.LEFT,
        release=row.id,
        note="not in the files any more" + ("" if prune else "; `--prune` retires it"),
    )


def _intent(spec: ModelSpec, row: ReleaseRow | None, dead: Collection[str]) -> Intent:
    if row is None:
        return Intent(model=spec.name, action=Action.CREATE, note=spec.source)
    if row.spec_digest == spec.digest:
        action = Action.RESTORE if row.id in dead else Action.UNCHANGED
        note = f"{row.id} is not alive" if row.id in dead else ""
        unapplied = spec_changes(row.release.spec, spec) if row.release else ()
        if unapplied and action == Action.UNCHANGED:
            return Intent(model=spec.name, action=Action.NOTED, release=row.id, changes=unapplied)
        return Intent(model=spec.name, action=action, release=row.id, note=note)
    fields = spec_changes(row.release.spec, spec) if row.release else ()
    note = "" if row.release else f"another version of moorage wrote the record of {row.id}"
    return Intent(model=spec.name, action=Action.CHANGE, release=row.id, changes=fields, note=note)
