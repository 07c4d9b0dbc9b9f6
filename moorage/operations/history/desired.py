"""Actions that make the running models match their files."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from moorage.common.values import Value
from moorage.operations.history.changes import Change, spec_changes
from moorage.releases.release_row import ReleaseRow
from moorage.spec import ModelSpec


class Action(StrEnum):
    """Actions for one model."""

    CREATE = "create"
    CHANGE = "change"
    RESTORE = "restore"  # recorded as serving its file's spec, but not alive
    NOTED = "note"  # only the record is updated: the changed fields do not affect what runs
    UNCHANGED = "unchanged"
    RETIRE = "retire"
    LEFT = "left"  # no longer in its files; only `--prune` retires it


IDLE = frozenset({Action.UNCHANGED, Action.LEFT})
"""Actions that do nothing."""


class Intent(Value):
    """The action for one model, with the reason: its changed fields, else a note.

    `release` serves the model; empty = none.
    """

    model: str
    action: Action
    release: str = ""
    changes: tuple[Change, ...] = ()
    note: str = ""


class Applied(Value):
    """The outcome of an intent.

    Attributes:
        action: `deploy`, `retire` or `note`.
        outcome: `done`, `unchanged`, `failed` or `skipped`.
        release: The release that was created or ended; empty = none.
        exit_code: Exit code of the failure's class; 0 = no failure.
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
    """The intents: retirements first, since they make room, then each spec in its order.

    A serving model that is in no file is retired only if it was applied from the same set of files.
    Models deployed by hand or from other files are left alone.

    Args:
        dead: Ids of releases that are recorded as running but are not alive.
        owner: The set of files; empty = it owns nothing.
    """
    serving = {row.model: row for row in running}
    dropped = sorted(
        model
        for model in serving.keys() - {spec.name for spec in specs}
        if owner and (record := serving[model].release) and record.applied_from == owner
    )
    action = Action.RETIRE if prune else Action.LEFT
    note = "not in the files any more" + ("" if prune else "; `--prune` retires it")
    return (
        *(Intent(model=one, action=action, release=serving[one].id, note=note) for one in dropped),
        *(_intent(spec, serving.get(spec.name), dead) for spec in specs),
    )


def _intent(spec: ModelSpec, row: ReleaseRow | None, dead: Collection[str]) -> Intent:
    if row is None:
        return Intent(model=spec.name, action=Action.CREATE, note=f"new: {spec.source}")
    fields = spec_changes(row.release.spec, spec) if row.release else ()
    action, note = Action.NOTED if fields else Action.UNCHANGED, ""
    if row.spec_digest != spec.digest:
        action = Action.CHANGE
        note = "" if row.release else f"another version of moorage wrote the record of {row.id}"
    elif row.id in dead:
        action, fields, note = Action.RESTORE, (), f"{row.id} is not alive"
    return Intent(model=spec.name, action=action, release=row.id, changes=fields, note=note)
