"""Which release is meant."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.operations.history.targets import last_two, one_of, rollback_target
from moorage.releases.release import FailureRecord, Release, ReleaseRow
from tests.builders import NOON, a_spec
from tests.operations.history.releases import planned, ran

FAILURE = FailureRecord(cause=Cause.ENGINE_EXITED, detail="exit code 1", suggestion="")


def row(number: int, state: str = "superseded", release: Release | None = None) -> ReleaseRow:
    return ReleaseRow.model_validate(
        {
            "id": f"tiny.v{number}",
            "model": "tiny",
            "number": number,
            "state": state,
            "spec_digest": a_spec().digest,
            "revision": "a1",
            "flow_run_id": "",
            "created_at": NOON,
            "updated_at": NOON,
            "release": release or ran(planned(a_spec(), number)),
        }
    )


def failed(number: int) -> ReleaseRow:
    return row(number, "error", planned(a_spec(), number, failure=FAILURE))


@pytest.mark.parametrize(
    ("text", "found"),
    [("tiny.v1", "tiny.v1"), ("tiny.v12", "tiny.v12"), ("o", "other.v1")],
)
def test_an_id_or_its_only_beginning(text: str, found: str) -> None:
    assert one_of(text, ["tiny.v1", "tiny.v12", "tiny.v13", "other.v1"]) == found


@pytest.mark.parametrize(("text", "words"), [("tiny.v1", "tiny.v12, tiny.v13"), ("x", "moorage")])
def test_a_beginning_of_several_or_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(Failure) as failure:
        one_of(text, ["tiny.v12", "tiny.v13"])
    assert failure.value.cause == Cause.UNKNOWN_RELEASE
    assert words in failure.value.suggestion


def test_the_last_two_have_records() -> None:
    rows = [row(4), failed(3).model_copy(update={"release": None}), row(2), row(1)]
    assert [release.id for release in last_two("tiny", rows)] == ["tiny.v2", "tiny.v4"]
    with pytest.raises(Failure, match="1 releases with a record"):
        last_two("tiny", [row(1)])


@pytest.mark.parametrize(
    ("rows", "to", "found"),
    [
        ([row(3, "running"), row(2), row(1)], "", "tiny.v2"),
        ([failed(4), row(3, "running"), failed(2), row(1)], "", "tiny.v1"),
        ([row(2, "stopped"), row(1)], "", "tiny.v2"),
        ([row(3, "running"), row(2), row(1)], "tiny.v1", "tiny.v1"),
    ],
)
def test_the_release_to_go_back_to(rows: list[ReleaseRow], to: str, found: str) -> None:
    assert rollback_target("tiny", rows, to).id == found


@pytest.mark.parametrize(
    ("rows", "to", "words"),
    [
        ([row(1, "running")], "", "no earlier release of tiny ever ran"),
        ([row(2, "running"), failed(1)], "tiny.v1", "tiny.v1 never ran"),
        ([row(2, "running"), row(1)], "other.v1", "other.v1 is no release of tiny"),
    ],
)
def test_what_cannot_be_gone_back_to(rows: list[ReleaseRow], to: str, words: str) -> None:
    with pytest.raises(Failure, match=words) as failure:
        rollback_target("tiny", rows, to)
    assert failure.value.cause == Cause.CANNOT_ROLL_BACK
