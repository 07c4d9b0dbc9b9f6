"""Which release is meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable
from moorage.engines.launch import LaunchPlan, Mount
from moorage.engines.recovery import Correction, with_correction
from moorage.models.pin import AssetRole, Pin
from moorage.models.quantizations import FilesChoice
from moorage.operations.history.rollback import (
    last_two,
    one_of,
    pinned_spec,
    replanned,
    require_same,
    rollback_target,
)
from moorage.placement.placement import Placement
from moorage.releases.release import FailureRecord, Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec
from tests.builders import (
    NOON,
    REVISION,
    a_host,
    a_model,
    a_placement,
    a_release,
    a_spec,
    an_image,
)
from tests.operations.history.releases import planned, ran

FAILURE = FailureRecord(cause=Cause.ENGINE_EXITED, detail="exit code 1", suggestion="")


def row(
    number: int, state: str = "superseded", release: Release | None = None, like: int = 0
) -> ReleaseRow:
    """A release that ran, with a spec of its own, or with that of the release `like`."""
    spec = a_spec(context=512 * (like or number))
    return ReleaseRow(
        id=f"tiny.v{number}",
        model="tiny",
        number=number,
        state=ReleaseState(state),
        spec_digest=a_spec().digest,
        revision="a1",
        flow_run_id="",
        created_at=NOON,
        updated_at=NOON,
        release=release or ran(planned(spec, number)),
    )


def failed(number: int) -> ReleaseRow:
    return row(number, "error", planned(a_spec(), number, failure=FAILURE))


def foreign(number: int, state: str = "superseded", **record: Any) -> ReleaseRow:
    """Its record was written by another version, in another form."""
    return replace(row(number, state), release=None, foreign_record={"shape": "new", **record})


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
    rows = [row(4), replace(failed(3), release=None), row(2), row(1)]
    assert [release.id for release in last_two("tiny", rows)] == ["tiny.v2", "tiny.v4"]
    with pytest.raises(Failure, match="1 release with a record"):
        last_two("tiny", [row(1)])
    with pytest.raises(Failure, match=r"wrote the record of tiny\.v3"):
        last_two("tiny", [row(4), foreign(3), row(2)])


FIRST = a_spec(context=512)
OTHER_IMAGE = ran(planned(FIRST, 2, image=an_image(digest=f"sha256:{'cd' * 32}")))
AUTO = a_spec(files="auto")
Q4, Q8 = (
    ran(planned(AUTO, at, files=FilesChoice(pattern=name, reason="", verdicts=())))
    for at, name in enumerate(("*Q4*", "*Q8*"), 1)
)


@pytest.mark.parametrize(
    ("rows", "to", "found"),
    [
        ([row(3, "running"), row(2), row(1)], "", "tiny.v2"),
        ([failed(4), row(3, "running"), failed(2), row(1)], "", "tiny.v1"),
        ([row(2, "stopped"), row(1)], "", "tiny.v2"),
        ([row(2, "asleep"), row(1)], "", "tiny.v1"),
        ([row(3, "running", like=2), row(2), row(1)], "", "tiny.v1"),
        ([row(3, "running", like=2), row(2), row(1)], "tiny.v2", "tiny.v2"),
        ([row(4, "running", like=1), failed(3), row(2), row(1)], "", "tiny.v2"),
        ([row(3, "stopped", like=2), row(2), row(1)], "", "tiny.v3"),
        ([row(2, "running", OTHER_IMAGE), row(1)], "", "tiny.v1"),
        ([row(2, "running", Q8), row(1, release=Q4)], "", "tiny.v1"),
        ([row(3, "running"), row(2), row(1)], "tiny.v1", "tiny.v1"),
        (
            [foreign(3, "running"), foreign(2, "error", failure={"cause": "new"}), row(1)],
            "",
            "tiny.v1",
        ),
        ([row(3, "running"), foreign(2), row(1)], "tiny.v1", "tiny.v1"),
    ],
)
def test_the_release_to_go_back_to(rows: list[ReleaseRow], to: str, found: str) -> None:
    assert rollback_target("tiny", rows, to).id == found


@pytest.mark.parametrize(
    ("rows", "to", "words"),
    [
        ([row(1, "running")], "", "no earlier release of tiny ever ran"),
        ([row(2, "running", like=1), row(1)], "", r"ran what serves now: tiny\.v1"),
        ([row(2, "running"), failed(1)], "tiny.v1", "tiny.v1 never ran"),
        ([row(2, "running"), row(1)], "other.v1", "tiny has no release other.v1"),
        ([row(3, "running"), foreign(2), row(1)], "", r"wrote the record of tiny\.v2"),
        ([row(3, "running"), foreign(2), row(1)], "tiny.v2", r"wrote the record of tiny\.v2"),
    ],
)
def test_what_cannot_be_gone_back_to(rows: list[ReleaseRow], to: str, words: str) -> None:
    with pytest.raises(Failure, match=words) as failure:
        rollback_target("tiny", rows, to)
    assert failure.value.cause == Cause.CANNOT_ROLL_BACK


POET = {"name": "poet", "source": "hf://org/poet", "revision": "main"}
LOCAL = {"name": "local", "source": "file:///srv/local"}
BUCKET = {"name": "bucket", "source": "s3://models/bucket"}
PINNED_SPEC = a_spec(
    revision="main",
    lora=[POET, LOCAL, BUCKET],
    speculative={"method": "eagle3", "tokens": 3, "model": "hf://org/small"},
)
PINS = (
    Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision="a" * 40),
    Pin(role=AssetRole.ADAPTER, name="local", source="file:///srv/local", revision="local-1"),
    Pin(role=AssetRole.ADAPTER, name="bucket", source="s3://models/bucket", revision="b" * 64),
    Pin(role=AssetRole.DRAFT, name="draft", source="hf://org/small", revision="d" * 40),
)


def test_the_model_its_adapters_and_its_draft_are_pinned() -> None:
    spec = pinned_spec(a_release(spec=PINNED_SPEC, companions=PINS))
    assert spec.revision == REVISION
    assert [adapter.revision for adapter in spec.lora] == ["a" * 40, None, "b" * 64]
    assert spec.speculative
    assert spec.speculative.revision == "d" * 40
    assert type(spec).model_validate(spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize(
    ("files", "chosen", "pinned"),
    [("auto", "*Q6*", "*Q6*"), ("auto", "", None), ("*Q4*", "", "*Q4*"), (None, "", None)],
)
def test_files_are_those_that_it_ran(files: str | None, chosen: str, pinned: str | None) -> None:
    choice = FilesChoice(pattern=chosen, reason="", verdicts=()) if chosen else None
    spec = a_spec(files=files)
    assert pinned_spec(a_release(spec=spec, files=choice)).files == pinned


def test_a_directory_has_no_revision_to_pin() -> None:
    spec = a_spec(source="file:///srv/tiny")
    assert pinned_spec(a_release(spec=spec, revision="local-1")) == spec


def test_a_directory_that_has_changed_is_not_what_ran() -> None:
    release = a_release(spec=a_spec(source="file:///srv/tiny"), revision="local-1")
    require_same(release, a_model(revision="local-1"))
    with pytest.raises(Failure, match=r"local-1; the source now has local-2") as failure:
        require_same(release, a_model(revision="local-2"))
    assert failure.value.cause == Cause.SOURCE_MISSING


SPEC = a_spec(engine={"args": ["--max-num-seqs 8"]}, placement={"accelerators": 1}, replicas=2)
NAMES = {"name", "labels"}


def elsewhere(spec: ModelSpec, **seat: Any) -> Placement:
    """The placement of a spec, with something else in each seat."""
    placement = a_placement(spec, a_host())
    seats = tuple(
        one.model_copy(update={name: one_container(value, at) for name, value in seat.items()})
        for at, one in enumerate(placement.seats)
    )
    return placement.model_copy(update={"seats": seats})


def one_container(value: Any, at: int) -> Any:
    return value[at] if isinstance(value, list) else value


def plan_of(release: Release) -> LaunchPlan:
    assert release.plan
    return release.plan


def older_rules(plan: LaunchPlan) -> LaunchPlan:
    """As another version of moorage might have planned it."""
    flag = Flag(tokens=("--old-default", "1"), origin=Origin.DEFAULT, reason="as it was then")
    variable = Variable(name="OLD", value="1", origin=Origin.DEFAULT, reason="as it was then")
    containers = tuple(
        one.model_copy(
            update={
                "command": (one.command[0], flag, *one.command[1:]),
                "environment": (variable, *one.environment[1:]),
                "shm_bytes": 7,
            }
        )
        for one in plan.containers
    )
    return plan.model_copy(update={"containers": containers})


def test_at_the_same_place_only_names_differ() -> None:
    recorded = older_rules(plan_of(planned(SPEC)))
    then, fresh = plan_of(planned(SPEC)), plan_of(planned(SPEC, 5))
    known = recorded.model_copy(update={"checked_against": "vllm 0.32.0"})
    made = replanned(known, then, fresh)
    assert made.checked_against == known.checked_against
    for old, new in zip(recorded.containers, made.containers, strict=True):
        assert new.argv == old.argv
        assert new.model_dump(exclude=NAMES) == old.model_dump(exclude=NAMES)
    assert [one.name for one in made.containers] == [one.name for one in fresh.containers]
    assert made.release == "tiny.v5"
    assert all(one.labels["moorage.release"] == "tiny.v5" for one in made.containers)


def test_another_port_changes_the_words_that_name_it() -> None:
    recorded = older_rules(plan_of(planned(SPEC)))
    ports = [one.port for one in recorded.containers]
    moved = elsewhere(SPEC, port=[port + 20 for port in ports])
    fresh = plan_of(planned(SPEC, 5, placement=moved))
    made = replanned(recorded, plan_of(planned(SPEC)), fresh)
    for old, new in zip(recorded.containers, made.containers, strict=True):
        other = str(old.port + 20)
        assert new.port == old.port + 20
        assert new.argv == tuple(other if word == str(old.port) else word for word in old.argv)


def test_other_accelerators_change_what_they_demand_and_nothing_else() -> None:
    recorded = older_rules(plan_of(planned(SPEC)))
    moved = elsewhere(SPEC, accelerators=[(1,), (0,)], utilization=0.5)
    fresh = plan_of(planned(SPEC, 5, placement=moved))
    made = replanned(recorded, plan_of(planned(SPEC)), fresh)
    for old, new in zip(recorded.containers, made.containers, strict=True):
        assert new.devices != old.devices
        assert changed(old.argv, new.argv) == {"--gpu-memory-utilization"}


def test_a_number_of_the_second_try_stays() -> None:
    correction = Correction(
        option="--max-num-batched-tokens",
        before="8192",
        value="4096",
        stated="",
        cause=Cause.ENGINE_KV_CACHE_TOO_SMALL,
        reason="the engine itself named it",
        evidence="",
    )
    plan = plan_of(planned(SPEC))
    recorded = with_correction(plan, correction, {one.name for one in plan.containers})
    made = replanned(recorded, plan, plan_of(planned(SPEC, 5)))
    assert [one.argv for one in made.containers] == [one.argv for one in recorded.containers]


def test_what_carries_the_name_of_the_release_carries_the_new_one() -> None:
    def with_volume(plan: LaunchPlan) -> LaunchPlan:
        first, *others = plan.containers
        volume = Mount(source=f"{first.name}-tmp", target="/tmp", volume=True)
        follows = [one.model_copy(update={"awaits": first.name}) for one in others]
        first = first.model_copy(update={"mounts": (*first.mounts, volume)})
        return plan.model_copy(update={"containers": (first, *follows)})

    recorded, fresh = (with_volume(plan_of(planned(SPEC, number))) for number in (1, 5))
    made = replanned(recorded, recorded, fresh)
    assert made == fresh
    assert made.containers[0].mounts[-1].source == "moorage-tiny.v5-r0-leader-tmp"
    assert made.containers[1].awaits == "moorage-tiny.v5-r0-leader"


def test_where_its_place_is_gone_the_rules_of_today_count() -> None:
    recorded = older_rules(plan_of(planned(SPEC)))
    fresh = plan_of(planned(SPEC, 5))
    made = replanned(recorded, None, fresh, "another version is installed")
    assert made.containers == fresh.containers
    assert made.warnings == (*fresh.warnings, "another version is installed")


def changed(before: tuple[str, ...], after: tuple[str, ...]) -> set[str]:
    """Options whose value differs; nothing may have come or gone."""
    assert len(before) == len(after)
    pairs = zip(before, after, strict=True)
    return {before[at - 1] for at, (old, new) in enumerate(pairs) if old != new}
