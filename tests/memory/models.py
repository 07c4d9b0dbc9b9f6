"""Models of the conformance data, read once, and what they need."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from moorage.common.refusal import Refusal
from moorage.common.units import GIB
from moorage.memory.demand import MemoryModel
from moorage.memory.need import MemoryQuery, Need
from moorage.memory.options import MemoryOptions
from moorage.models.source import TensorHeaders
from tests.conformance.memory import Model

DATA = Path(__file__).parents[1] / "conformance" / "data" / "memory"


@cache
def known(name: str) -> tuple[dict[str, Any], TensorHeaders]:
    """Configuration and headers."""
    model = Model(DATA / name)
    headers = ((key, header.dtype, header.shape) for key, header in model.tensors.items())
    return model.config, TensorHeaders(headers)


@cache
def plain(name: str) -> MemoryModel:
    """With vLLM's own choice everywhere."""
    return with_options(name)


def with_options(name: str, **options: Any) -> MemoryModel:
    return MemoryModel(*known(name), MemoryOptions.model_validate(options))


def needed(model: MemoryModel, gib: int = 141, **use: Any) -> Need:
    """What it needs of an accelerator of so many GiB; a refusal is a mistake of the test."""
    need = model.need(MemoryQuery(total=gib * GIB, **{"tokens": 8192, **use}))
    assert isinstance(need, Need), need
    return need


def refusal(model: MemoryModel, **use: Any) -> Refusal:
    need = model.need(MemoryQuery(total=80 * GIB, **{"tokens": 8192, **use}))
    assert isinstance(need, Refusal), need
    return need


def weights_of(model: MemoryModel, **use: Any) -> int:
    term = needed(model, **use).term("weights")
    assert term is not None
    return term.bytes


def gib(need: Need, name: str) -> float:
    term = need.term(name)
    assert term is not None, name
    return term.bytes / GIB
