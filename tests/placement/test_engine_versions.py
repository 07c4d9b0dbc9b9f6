from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.units import GIB, MIB
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.memory.calibration import Measurement, calibration_key
from moorage.memory.demand import memory_model
from moorage.memory.need import Term
from moorage.models.profile import derive_profile
from moorage.placement.demand import Subject
from moorage.placement.engine_versions import engine_versions
from moorage.placement.placement import Seat
from moorage.placement.propose import propose
from moorage.readiness.engine_facts import Measured
from moorage.spec import EngineName, RuntimeName
from tests.builders import NOON, a_fleet, a_host, a_model, a_spec, an_accelerator
from tests.memory.models import known

VLLM = ENGINES[EngineName.VLLM]
DOCKER = a_host(runtimes=(RuntimeName.DOCKER,))


def a_process_host(version: str, **facts: Any) -> HostSnapshot:
    program = Program(engine=EngineName.VLLM, path="/opt/vllm", version=version)
    return a_host(runtimes=(RuntimeName.PROCESS,), programs=(program,), **facts)


@pytest.mark.parametrize(
    ("engine", "hosts", "expected"),
    [
        ({}, [DOCKER], {"cuda": ("0.32.0",)}),
        ({"version": "0.28.0"}, [DOCKER], {"cuda": ("0.28.0",)}),
        ({"image": "own/vllm:7"}, [DOCKER], {"cuda": ("",)}),
        ({}, [a_process_host("0.26.0")], {"cuda": ("0.26.0",)}),
        ({}, [a_process_host("")], {"cuda": ("",)}),
        (
            {},
            [DOCKER, a_process_host("0.26.0", name="second")],
            {"cuda": ("0.32.0", "0.26.0")},
        ),
        ({"version": "0.28.0"}, [a_process_host("0.26.0")], {}),
        ({}, [a_host(accelerators=())], {}),
    ],
    ids=["tested", "stated", "own image", "program", "unknown program", "two", "another", "none"],
)
def test_the_versions_are_those_of_images_and_programs(
    engine: dict[str, Any], hosts: list[HostSnapshot], expected: dict[str, tuple[str, ...]]
) -> None:
    assert engine_versions(a_spec(engine=engine), VLLM, a_fleet(*hosts)) == expected


def test_without_a_fleet_nothing_is_known() -> None:
    assert engine_versions(a_spec(), VLLM, None) == {}


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        (EngineName.VLLM, "0.26.0", ("0.26.0",)),
        (EngineName.TRITON, "26.07", ("0.24.0",)),
        (EngineName.TRITON, "99.01", ("",)),
        (EngineName.SGLANG, "0.5.23", ()),
    ],
)
def test_each_engine_knows_which_vllm_it_has(
    name: EngineName, version: str, expected: tuple[str, ...]
) -> None:
    assert ENGINES[name].vllm_versions([version]) == expected


def mistral() -> Subject:
    config, headers = known("mistral-7b-v0.1")
    spec, model = a_spec(context=8192), a_model(config=config, headers=headers)
    profile = derive_profile(spec, model)
    return Subject(spec, profile, memory_model(spec, model, profile))


def placed(subject: Subject, version: str) -> tuple[Seat, Term]:
    """The seat on a host with this version installed, and the term of its graphs."""
    host = a_process_host(version, accelerators=(an_accelerator(),))
    (seat,) = propose(subject, a_fleet(host), ENGINES).seats
    graphs = seat.need.term("cuda_graphs") if seat.need else None
    assert graphs
    return seat, graphs


@pytest.mark.parametrize(("version", "inside"), [("0.26.0", False), ("0.30.0", True)])
def test_the_claim_of_a_seat_follows_the_version_that_is_installed(
    version: str, inside: bool
) -> None:
    seat, graphs = placed(mistral(), version)
    assert graphs.inside == inside
    assert version in graphs.reason
    assert seat.need
    assert seat.accelerator_bytes[0] >= sum(term.bytes for term in seat.need.terms)


@pytest.mark.parametrize(("version", "size"), [("0.26.0", GIB // 2), ("0.27.0", 1021 * MIB)])
def test_what_a_program_measured_corrects_its_own_version_only(version: str, size: int) -> None:
    subject, step = mistral(), ("--max-num-batched-tokens", "8192", "--max-num-seqs", "1024")
    device = an_accelerator().name
    key = calibration_key(subject.profile, "vllm", "0.26.0", "cuda", device, step)
    measured = Measured(graph_bytes=GIB // 2)
    one = Measurement(workload="w", key=key, measured=measured, release="a.v1", measured_at=NOON)
    _, graphs = placed(replace(subject, measured=(one,)), version)
    assert (graphs.bytes, graphs.inside) == (size, False)
