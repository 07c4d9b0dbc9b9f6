from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.registry import ENGINES, choose_engine
from moorage.images.catalogue import CATALOGUE
from moorage.placement.snapshot import HostSnapshot
from moorage.readiness.diagnosis import LogCause
from moorage.spec import EngineName, Mode
from moorage.values import Origin
from tests.builders import (
    ON_CPU,
    a_cpu_host,
    a_fleet,
    a_host,
    a_profile,
    a_spec,
    an_accelerator,
)

VLLM, TRANSFORMERS = EngineName.VLLM, EngineName.TRANSFORMERS
NPUS = a_host(accelerators=(an_accelerator(type="cann"),))
TPUS = a_host(accelerators=(an_accelerator(type="tpu"),))


def test_every_engine_that_a_spec_can_name_is_there() -> None:
    assert set(ENGINES) == set(EngineName) - {EngineName.AUTO}
    assert all(engine.name == name for name, engine in ENGINES.items())


KNOWN = [engine for engine in ENGINES.values() if engine.name != EngineName.CUSTOM]


@pytest.mark.parametrize("engine", KNOWN, ids=lambda engine: engine.name)
def test_an_engine_is_filled_in(engine: Any) -> None:
    assert engine.program
    assert engine.default_version[0].isdigit()
    assert engine.modes
    assert Mode.AUTO not in engine.modes
    assert all(isinstance(cause, LogCause) for cause in engine.log_causes)


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.template)
def test_every_image_is_for_hardware_that_its_engine_supports(row: Any) -> None:
    engine = ENGINES[row.engine]
    assert row.accelerator_type in engine.accelerator_types | {"cpu"}


@pytest.mark.parametrize(
    ("wish", "mode", "host", "name", "origin"),
    [
        ({"engine": {"name": "vllm"}}, Mode.COMPLETION, a_cpu_host(), VLLM, Origin.USER),
        ({"engine": {"name": "transformers"}}, Mode.EMBEDDING, a_host(), TRANSFORMERS, Origin.USER),
        ({}, Mode.COMPLETION, a_host(), VLLM, Origin.DERIVED),
        ({}, Mode.COMPLETION, a_cpu_host(), TRANSFORMERS, Origin.DERIVED),
        ({}, Mode.COMPLETION, NPUS, VLLM, Origin.DERIVED),
        ({}, Mode.COMPLETION, TPUS, TRANSFORMERS, Origin.DERIVED),
        ({"placement": ON_CPU}, Mode.COMPLETION, a_host(), TRANSFORMERS, Origin.DERIVED),
        ({"engine": {"image": "own:1"}}, Mode.COMPLETION, a_cpu_host(), VLLM, Origin.DERIVED),
        ({}, Mode.EMBEDDING, a_cpu_host(), VLLM, Origin.DERIVED),
        ({}, Mode.RERANKING, a_cpu_host(), VLLM, Origin.DERIVED),
    ],
)
def test_auto_takes_the_engine_that_suits_fleet_and_mode(
    wish: dict[str, Any], mode: Mode, host: HostSnapshot, name: EngineName, origin: Origin
) -> None:
    engine, found, reason = choose_engine(a_spec(**wish), a_profile(mode=mode), a_fleet(host))
    assert (engine.name, found) == (name, origin)
    assert reason
