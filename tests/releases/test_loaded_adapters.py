from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.workload import Workload
from moorage.models.assets import Asset
from moorage.models.pin import AssetRole, Pin
from moorage.models.source import WeightSummary
from moorage.releases.loaded_adapters import (
    holding,
    lacking,
    loaded,
    require_loadable,
    require_updates,
    with_adapter,
    without_adapter,
)
from moorage.releases.release_row import ReleaseRow
from tests.builders import a_companion, a_container, a_plan, a_release, a_row, a_spec, a_workload

UPDATES = {
    "lora": [{"name": "judge", "source": "file:///adapters/judge"}],
    "lora_updates": {"max": 2},
}


def pin(name: str = "poet", revision: str = "a1") -> Pin:
    return Pin(role=AssetRole.ADAPTER, name=name, source="hf://org/poet", revision=revision)


def two(*first: Pin, second: tuple[Pin, ...] = ()) -> tuple[Workload, ...]:
    return a_workload("r0", adapters=first), a_workload("r1", adapters=second)


def row(*workloads: Workload, wish: dict[str, Any] = UPDATES) -> ReleaseRow:
    spec = a_spec(**wish)
    plan = a_plan(a_container())
    return a_row(a_release(spec=spec, plan=plan), workloads=workloads or two())


def listed(*first: str, second: tuple[str, ...] | None = None) -> dict[str, frozenset[str]]:
    own = ("tiny", "judge")
    return {
        "r0": frozenset((*own, *first)),
        "r1": frozenset((*own, *(first if second is None else second))),
    }


def cause_of(row: ReleaseRow, wanted: Pin, names: dict[str, frozenset[str]]) -> Cause:
    with pytest.raises(Failure) as caught:
        lacking(row, wanted, names)
    return caught.value.cause


def test_a_new_adapter_is_loaded_everywhere() -> None:
    assert [one.name for one in lacking(row(), pin(), listed())] == ["r0", "r1"]


def test_one_that_is_everywhere_is_loaded_nowhere() -> None:
    assert lacking(row(*two(pin(), second=(pin(),))), pin(), listed("poet")) == ()


def test_a_replica_that_was_started_again_gets_it_back() -> None:
    held = row(*two(pin(), second=(pin(),)))
    assert [one.name for one in lacking(held, pin(), listed("poet", second=()))] == ["r1"]


@pytest.mark.parametrize("name", ["tiny", "judge"])
def test_the_names_of_the_spec_are_taken(name: str) -> None:
    assert cause_of(row(), pin(name), listed()) is Cause.ADAPTER_NAME_TAKEN


def test_another_revision_is_loaded_only_once_the_old_one_is_gone() -> None:
    held = row(*two(pin(), second=(pin(),)))
    assert cause_of(held, pin(revision="b2"), listed("poet")) is Cause.ADAPTER_NAME_TAKEN
    assert len(lacking(held, pin(revision="b2"), listed())) == 2


def test_what_somebody_else_loaded_is_left_alone() -> None:
    assert cause_of(row(), pin(), listed("poet")) is Cause.ADAPTER_NAME_TAKEN


def test_there_is_room_for_as_many_as_the_spec_says() -> None:
    held = (pin("a"), pin("b"))
    full = row(*two(*held, second=held))
    assert cause_of(full, pin(), listed("a", "b")) is Cause.ADAPTERS_FULL
    assert lacking(full, pin("a"), listed("a", "b")) == ()


@pytest.mark.parametrize("wish", [{}, {"lora": UPDATES["lora"]}])
def test_without_leave_in_the_spec_nothing_changes(wish: dict[str, Any]) -> None:
    with pytest.raises(Failure, match="deployed without `lora_updates`") as caught:
        require_updates(row(wish=wish))
    assert caught.value.cause is Cause.ADAPTERS_FIXED


def test_an_adapter_is_unloaded_wherever_it_is() -> None:
    held = row(*two(pin()))
    assert [one.name for one in holding(held, "poet", listed())] == ["r0"]
    assert [one.name for one in holding(held, "poet", listed("poet"))] == ["r0", "r1"]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nobody", Cause.UNKNOWN_ADAPTER),
        ("judge", Cause.ADAPTERS_FIXED),
        ("tiny", Cause.ADAPTERS_FIXED),
    ],
)
def test_what_was_not_loaded_is_not_unloaded(name: str, cause: Cause) -> None:
    with pytest.raises(Failure) as caught:
        holding(row(), name, listed())
    assert caught.value.cause is cause


def test_workloads_remember_each_name_once() -> None:
    given = with_adapter(with_adapter(a_workload(), pin()), pin(revision="b2"))
    assert given.adapters == (pin(revision="b2"),)
    assert without_adapter(given, "poet").adapters == ()
    assert loaded(row(*two(pin(), pin("a"), second=(pin(),)))) == (pin(), pin("a"))


def test_an_adapter_in_a_format_of_another_engine_is_refused() -> None:
    release = row().release
    assert release
    poet = Asset(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet")
    require_loadable(release, a_companion(poet))
    weights = WeightSummary(family="gguf", bytes=1)
    with pytest.raises(Failure, match="poet is gguf; vllm loads safetensors adapters only"):
        require_loadable(release, a_companion(poet, weights=weights))
