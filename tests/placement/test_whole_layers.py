"""A GGUF model whose accelerators hold whole layers, so that any number of them shares it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.engines.registry import ENGINES
from moorage.placement.demand import Subject
from moorage.placement.placement import Seat
from moorage.placement.propose import NoFit, propose
from tests.builders import a_fleet, a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import a_gguf_memory

LAYERS = 48
MEMORY = a_gguf_memory(LAYERS, heads=64)


def seat(gpus: int, gib: int = 24, **placement: Any) -> Seat:
    cards = tuple(an_accelerator(index, gib) for index in range(gpus))
    spec = a_spec(placement=placement, concurrency=1)
    profile = a_profile(format="gguf", layers=LAYERS, context=8192, attention_heads=64)
    subject = Subject(spec, profile, MEMORY)
    (found,) = propose(subject, a_fleet(a_host(accelerators=cards)), ENGINES).seats
    return found


@pytest.mark.parametrize(
    ("gpus", "placement"),
    [(3, {}), (4, {}), *((number, {"accelerators": number}) for number in (3, 5, 6, 7))],
)
def test_accelerators_need_not_divide_the_heads(gpus: int, placement: dict[str, int]) -> None:
    taken = placement.get("accelerators", 3)
    assert seat(gpus, **placement).accelerators == tuple(range(taken))


def test_there_are_no_more_accelerators_than_layers() -> None:
    assert len(seat(LAYERS, accelerators=LAYERS).accelerators) == LAYERS
    with pytest.raises(NoFit) as refused:
        seat(LAYERS + 1, accelerators=LAYERS + 1)
    (verdict,) = refused.value.placement.verdicts
    assert verdict.refusal is Reason.ENGINE
    assert verdict.note == "48 layers are too few for 49 accelerators"
