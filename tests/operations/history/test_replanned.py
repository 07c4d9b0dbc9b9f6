"""A recorded plan for a new release: nothing differs but what its place demands."""

from __future__ import annotations

from typing import Any

from moorage.common.failures import Cause
from moorage.common.values import Origin
from moorage.engines.launch import Flag, LaunchPlan, Mount, Variable
from moorage.engines.recovery import Correction, with_correction
from moorage.operations.history.replanned import replanned
from moorage.placement.placement import Placement
from moorage.releases.release import Release
from moorage.spec import ModelSpec
from tests.builders import a_host, a_placement, a_spec
from tests.operations.history.releases import planned

SPEC = a_spec(engine={"args": ["--max-num-seqs 8"]}, placement={"accelerators": 1}, replicas=2)
NAMES = {"name", "labels"}


def elsewhere(spec: ModelSpec, **seat: Any) -> Placement:
    """The placement of a spec, with something else in each seat."""
    placement = a_placement(spec, a_host())
    seats = tuple(
        one.model_copy(update={name: one_of(value, at) for name, value in seat.items()})
        for at, one in enumerate(placement.seats)
    )
    return placement.model_copy(update={"seats": seats})


def one_of(value: Any, at: int) -> Any:
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
    made = replanned(recorded, then, fresh)
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
