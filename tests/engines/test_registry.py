from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.registry import ENGINES
from moorage.images.catalogue import CATALOGUE
from moorage.readiness.diagnosis import LogCause
from moorage.spec import EngineName, Mode

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
