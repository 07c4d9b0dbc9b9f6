"""What is to be done so that files and what serves agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.operations.history.desired import Action, intents
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from tests.builders import NOON, a_release, a_spec


def serving(name: str, owner: str = "", **spec: Any) -> ReleaseRow:
    release = a_release(f"{name}.v1", spec=a_spec(name=name, **spec), applied_from=owner)
    return ReleaseRow(
        id=release.id,
        model=name,
        number=1,
        state=ReleaseState.RUNNING,
        spec_digest=release.spec_digest,
        revision="a1",
        flow_run_id="",
        created_at=NOON,
        updated_at=NOON,
        release=release,
    )


def test_each_model_gets_what_it_needs() -> None:
    specs = [a_spec(name="new"), a_spec(name="same"), a_spec(name="dead"), a_spec(name="other")]
    running = [serving("same"), serving("dead"), serving("other", context=512)]
    found = intents(specs, running, dead={"dead.v1"})
    assert [(one.model, one.action, one.release) for one in found] == [
        ("new", Action.CREATE, ""),
        ("same", Action.UNCHANGED, "same.v1"),
        ("dead", Action.RESTORE, "dead.v1"),
        ("other", Action.CHANGE, "other.v1"),
    ]
    assert (found[0].note, found[0].changes) == (f"new: {specs[0].source}", ())
    (change,) = found[-1].changes
    assert (change.what, change.before, change.after) == ("context", "512", "auto")


def test_what_does_not_change_what_runs_is_noted() -> None:
    specs = [a_spec(name="a", labels={"tier": "gold"}), a_spec(name="b", labels={"tier": "low"})]
    noted, dead = intents(specs, [serving("a"), serving("b")], dead={"b.v1"})
    assert (noted.action, dead.action) == (Action.NOTED, Action.RESTORE)
    assert [change.what for change in noted.changes] == ["labels.tier"]


@pytest.mark.parametrize(
    ("owner", "prune", "expected"),
    [
        ("prod", True, {"b": Action.RETIRE, "c": Action.RETIRE}),
        ("prod", False, {"b": Action.LEFT, "c": Action.LEFT}),
        ("test", True, {"d": Action.RETIRE}),
        ("", True, {}),
    ],
)
def test_only_what_was_applied_from_the_same_files_is_retired(
    owner: str, prune: bool, expected: dict[str, Action]
) -> None:
    running = [serving("c", "prod"), serving("b", "prod"), serving("d", "test"), serving("hand")]
    found = intents([a_spec(name="a")], running, owner=owner, prune=prune)
    assert {one.model: one.action for one in found} == {**expected, "a": Action.CREATE}
    assert [one.model for one in found] == [*sorted(expected), "a"]


def test_a_record_that_cannot_be_read_is_changed_and_never_retired() -> None:
    foreign = replace(serving("a", "prod"), release=None)
    (found,) = intents([a_spec(name="a", context=7)], [foreign], owner="prod")
    assert found.action == Action.CHANGE
    assert "another version" in found.note
    assert not intents([], [foreign], owner="prod", prune=True)
