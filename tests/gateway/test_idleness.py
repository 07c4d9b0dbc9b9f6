from __future__ import annotations

import pytest

from moorage.gateway.idleness import (
    RETRY_SECONDS,
    Idle,
    Idleness,
    Loaded,
    Traffic,
    room_makers,
)
from moorage.inventory.claims import Capacity, Claim, Resource
from tests.builders import a_claim

ACCELERATOR, RAM = Resource.ACCELERATOR, Resource.RAM


def loaded(model: str, keep_alive: float | None = 10, total: int = 0, active: int = 0) -> Loaded:
    return Loaded(model, f"{model}.v1", keep_alive, Traffic(total, active))


def due(idleness: Idleness, now: float, *models: Loaded) -> list[str]:
    idleness.observe(models, now)
    return [one.model for one in idleness.due(models, now)]


def test_a_model_is_due_when_it_had_no_request_for_its_time() -> None:
    idleness = Idleness()
    assert due(idleness, 100, loaded("a")) == []  # it counts as used when it is seen first
    assert due(idleness, 109, loaded("a")) == []
    assert due(idleness, 110, loaded("a")) == ["a"]


def test_a_request_begins_the_time_anew() -> None:
    idleness = Idleness()
    due(idleness, 100, loaded("a"))
    assert due(idleness, 109, loaded("a", total=1)) == []
    assert due(idleness, 118, loaded("a", total=1)) == []
    assert due(idleness, 119, loaded("a", total=1)) == ["a"]


def test_a_request_in_flight_keeps_it_awake_however_long_it_takes() -> None:
    idleness = Idleness()
    due(idleness, 100, loaded("a", total=1, active=1))
    assert due(idleness, 500, loaded("a", total=1, active=1)) == []
    assert due(idleness, 505, loaded("a", total=1)) == []
    assert due(idleness, 510, loaded("a", total=1)) == ["a"]


def test_a_model_without_a_time_is_never_due_and_one_with_0_at_once() -> None:
    idleness = Idleness()
    assert due(idleness, 100, loaded("a", None), loaded("b", 0)) == ["b"]
    assert due(idleness, 9_999, loaded("a", None)) == []


def test_the_longest_idle_is_first_and_each_is_due_once_a_minute() -> None:
    idleness = Idleness()
    due(idleness, 100, loaded("a"), loaded("b"))
    due(idleness, 103, loaded("a", total=1), loaded("b"))
    models = loaded("a", total=1), loaded("b")
    assert due(idleness, 120, *models) == ["b", "a"]
    assert due(idleness, 130, *models) == []
    assert due(idleness, 120 + RETRY_SECONDS, *models) == ["b", "a"]


def test_who_may_make_room_is_idle_and_may_sleep() -> None:
    idleness = Idleness()
    models = loaded("a"), loaded("b"), loaded("never", None), loaded("busy", active=1)
    idleness.observe([models[1]], 90)
    idleness.observe(models, 100)
    found = [(one.model, one.seconds) for one in idleness.idle(models, 104)]
    assert found == [("b", 14), ("a", 4)]


def test_a_model_that_another_gateway_passes_requests_to_is_not_idle() -> None:
    idleness = Idleness()
    for now, elsewhere in ((0.0, 500.0), (100.0, 2.0)):
        loaded = [Loaded("llama", "llama.v1", 60.0, Traffic(), elsewhere)]
        idleness.observe(loaded, now)
    assert idleness.idle_seconds("llama.v1", 100.0) == 2.0
    assert idleness.since_last_request(100.0) == {}, "not through this one"
    assert idleness.due(loaded, 100.0) == []
    assert idleness.due(loaded, 160.0) == [Idle("llama", "llama.v1", 62.0)]


def test_only_what_had_a_request_has_a_last_one() -> None:
    idleness = Idleness()
    idleness.observe([loaded("a"), loaded("b"), loaded("c", total=7)], 100)
    assert idleness.since_last_request(101) == {"c.v1": 1}, (
        "its requests came before the first look"
    )
    idleness.observe([loaded("a", total=1), loaded("b"), loaded("c", total=7)], 102)
    assert idleness.since_last_request(104) == {"a.v1": 2, "c.v1": 4}
    idleness.observe([loaded("b")], 106)
    assert idleness.since_last_request(106) == {}


def on(release: str, index: int, amount: int) -> Claim:
    return a_claim(ACCELERATOR, amount, index, release=f"{release}.v1")


@pytest.mark.parametrize(
    ("others", "idle", "makers"),
    [
        pytest.param([on("b", 1, 60)], "b", "", id="another accelerator"),
        pytest.param([on("b", 0, 60), on("c", 1, 60)], "bc", "b", id="its accelerator"),
        pytest.param([on("b", 0, 60), on("c", 0, 20)], "c", "", id="too little"),
        pytest.param([on("b", 0, 40), on("c", 0, 20)], "bc", "bc", id="one after the other"),
        pytest.param([on("b", 0, 10), on("c", 1, 60)], "bc", "b", id="a program takes the rest"),
        pytest.param(
            [a_claim(RAM, 60, release="b.v1"), on("c", 0, 10)], "bc", "b", id="its RAM alone"
        ),
        pytest.param([a_claim(RAM, 60, release="b.v1")], "", "", id="nobody is idle"),
        pytest.param(
            [a_claim(ACCELERATOR, 60, release="b.v1", host="gpu-2")], "b", "", id="another host"
        ),
    ],
)
def test_only_those_make_room_that_hold_what_is_short_and_have_enough_together(
    others: list[Claim], idle: str, makers: str
) -> None:
    wanted = [on("a", 0, 60), a_claim(RAM, 60, release="a.v1")]
    capacities = {
        "gpu-1": (
            Capacity(resource=RAM, amount=100),
            *(Capacity(resource=ACCELERATOR, index=index, amount=80) for index in (0, 1)),
        )
    }
    found = room_makers(wanted, others, {f"{one}.v1" for one in idle}, capacities)
    assert found == {f"{one}.v1" for one in makers}
