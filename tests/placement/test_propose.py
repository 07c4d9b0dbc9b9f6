from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.propose import propose
from moorage.reports.plan_report import placement_sections
from moorage.spec import EngineName, Mode, ModelSpec
from tests.builders import (
    a_claim,
    a_cpu_host,
    a_fleet,
    a_host,
    a_profile,
    a_spec,
    an_accelerator,
)


def held_by(release: str, *indexes: int) -> tuple[Any, ...]:
    return tuple(
        a_claim(Resource.ACCELERATOR, 72 * GIB, index, release=release) for index in indexes
    )


def refused(spec: ModelSpec, *hosts: HostSnapshot, **profile: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        propose(Subject(spec, a_profile(**profile)), a_fleet(*hosts), ENGINES)
    return caught.value


def test_a_model_is_placed_beside_its_running_release_where_there_is_room() -> None:
    fleet = a_fleet(a_host(claims=held_by("tiny.v1", 0)))
    placement = propose(Subject(a_spec(), a_profile()), fleet, ENGINES, running="tiny.v1")
    assert placement.seats[0].accelerators == (1,)
    assert placement.stop_first == ""


def test_its_running_release_stops_first_only_when_it_fits_no_other_way() -> None:
    fleet = a_fleet(a_host(claims=held_by("tiny.v1", 0, 1)))
    placement = propose(Subject(a_spec(), a_profile()), fleet, ENGINES, running="tiny.v1")
    assert placement.seats[0].accelerators == (0,)
    assert placement.stop_first.startswith("tiny.v1 must stop first: gpu-1: accelerator-memory: ")


def test_a_model_does_not_leave_its_gpus_for_a_slower_engine_to_spare_a_stop() -> None:
    fleet = a_fleet(a_host(claims=held_by("tiny.v1", 0, 1)), a_cpu_host())
    placement = propose(Subject(a_spec(), a_profile()), fleet, ENGINES, running="tiny.v1")
    assert (placement.engine, placement.seats[0].host) == (EngineName.VLLM, "gpu-1")
    assert placement.stop_first


def test_a_running_release_stops_first_for_the_second_choice_of_engine_too() -> None:
    held = a_claim(Resource.RAM, 12 * GIB, host="cpu-1", release="tiny.v1")
    cpu = a_cpu_host(ram_total=16 * GIB, ram_free=4 * GIB, claims=(held,))
    fleet = a_fleet(a_host(unreachable="no route"), cpu)
    placement = propose(Subject(a_spec(), a_profile()), fleet, ENGINES, running="tiny.v1")
    assert (placement.engine, placement.seats[0].host) == (EngineName.TRANSFORMERS, "cpu-1")
    assert placement.stop_first


def test_the_releases_of_others_are_never_stopped() -> None:
    fleet = a_fleet(a_host(claims=held_by("other.v1", 0, 1)))
    with pytest.raises(Failure, match=r"held by other\.v1"):
        propose(Subject(a_spec(), a_profile()), fleet, ENGINES, running="tiny.v1")


def test_what_fits_nowhere_is_refused_with_the_reason_of_each_host() -> None:
    spec = a_spec(engine={"name": "vllm"}, placement={"accelerators": 1})
    failure = refused(spec, a_cpu_host(), a_host(unreachable="no route"))
    assert failure.cause is Cause.NO_FIT
    assert failure.detail.splitlines() == [
        "2 of 2 hosts refused: 1 no-such-accelerator, 1 unreachable",
        "cpu-1: no-such-accelerator: vllm can use none of what is there: the host has no"
        " accelerators",
        "gpu-1: unreachable: no route",
    ]


def test_troubles_of_hosts_are_told_with_the_placement_and_with_its_refusal() -> None:
    gone = a_cpu_host(troubles=("GPU 1 cannot be used",))
    failure = refused(a_spec(engine={"name": "vllm"}, placement={"accelerators": 1}), gone)
    assert failure.detail.splitlines()[-1] == "trouble: cpu-1: GPU 1 cannot be used"
    placement = propose(Subject(a_spec(), a_profile()), a_fleet(a_host(), gone), ENGINES)
    assert placement.troubles == ("cpu-1: GPU 1 cannot be used",)
    assert "Trouble: cpu-1: GPU 1 cannot be used" in placement_sections(placement)[0].text


@pytest.mark.parametrize(
    ("hosts", "cause"),
    [
        ([a_host(ports_in_use=(8000,))], Cause.PORT_TAKEN),
        ([a_host(ports_in_use=(8000,)), a_host("gpu-2", unreachable="away")], Cause.NO_FIT),
    ],
)
def test_a_taken_port_is_the_cause_only_if_it_is_the_reason_everywhere(
    hosts: list[HostSnapshot], cause: Cause
) -> None:
    assert refused(a_spec(port=8000), *hosts).cause is cause


def test_a_host_whose_disk_is_full_leaves_the_model_to_another() -> None:
    subject = Subject(a_spec(), a_profile(), staged="hf://org/tiny@abc", disk_bytes=8 * GIB)
    full = a_host(store="/srv/moorage", disk_free=GIB)
    roomy = a_host("gpu-2", store="/srv/moorage", disk_free=9 * GIB)
    assert propose(subject, a_fleet(full, roomy), ENGINES).seats[0].host == "gpu-2"
    with pytest.raises(Failure) as caught:
        propose(subject, a_fleet(full), ENGINES)
    assert caught.value.cause is Cause.DISK_FULL
    assert "gpu-1: disk: disk of models: 8.4 GiB needed, 1.0 GiB available" in caught.value.detail
    assert caught.value.suggestion == (
        "Make room in the store of gpu-1 (`moorage models prune`), or set its `store` to a larger"
        " disk: then the model fits."
    )
    away = a_host("gpu-2", unreachable="away")
    with pytest.raises(Failure) as caught:
        propose(subject, a_fleet(full, away), ENGINES)
    assert caught.value.cause is Cause.NO_FIT


def test_an_engine_that_does_not_serve_the_mode_is_refused_before_any_host_is_looked_at() -> None:
    spec = a_spec(engine={"name": "transformers"})
    failure = refused(spec, a_cpu_host(), mode=Mode.EMBEDDING)
    assert failure.cause is Cause.BAD_SPEC
    assert "transformers does not serve embedding, only completion" in failure.detail


def test_vllm_makes_pictures_in_an_image_that_the_spec_names() -> None:
    engine = {"name": "vllm", "version": "0.32.0"}
    mode = Mode.IMAGE_GENERATION
    failure = refused(a_spec(engine=engine), a_host(), mode=mode)
    assert failure.cause is Cause.BAD_SPEC
    assert "`engine.image`" in failure.suggestion
    own = a_spec(engine={**engine, "image": "acme/vllm-omni:1"})
    assert propose(Subject(own, a_profile(mode=mode)), a_fleet(a_host()), ENGINES).fits


def test_the_engine_and_why_it_was_taken_are_kept() -> None:
    placement = propose(Subject(a_spec(), a_profile()), a_fleet(a_cpu_host()), ENGINES)
    assert (placement.engine, placement.engine_origin) == (EngineName.TRANSFORMERS, Origin.DERIVED)
    assert placement.engine_reason


@pytest.mark.parametrize(
    "other",
    [a_host(accelerators=(an_accelerator(gib=4),)), a_host(unreachable="no route")],
    ids=["too small", "unreachable"],
)
def test_a_host_that_cannot_take_the_model_does_not_spoil_one_that_can(other: HostSnapshot) -> None:
    placement = propose(Subject(a_spec(), a_profile()), a_fleet(a_cpu_host(), other), ENGINES)
    assert (placement.engine, placement.seats[0].host) == (EngineName.TRANSFORMERS, "cpu-1")


@pytest.mark.parametrize("argument", ["--port 9000", "--host=::", "--served_model_name x"])
def test_an_argument_that_would_hide_the_engine_is_refused(argument: str) -> None:
    failure = refused(a_spec(engine={"args": [argument]}), a_host())
    assert failure.cause is Cause.BAD_SPEC
    assert failure.suggestion.startswith("Set `")
