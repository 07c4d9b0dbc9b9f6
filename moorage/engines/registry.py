"""The table of engines. Each engine is imported when it is first looked up."""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from moorage.spec import EngineName

if TYPE_CHECKING:
    from moorage.engines.base import Engine

NAMES = (
    *(EngineName.VLLM, EngineName.TRANSFORMERS, EngineName.LLAMA_CPP),
    *(EngineName.SGLANG, EngineName.TRITON, EngineName.CUSTOM),
)
"""The engines, in the order of lists that people read."""


@cache
def _engine(name: EngineName) -> Engine:
    match name:
        case EngineName.VLLM:
            from moorage.engines.vllm.engine import Vllm

            return Vllm()
        case EngineName.TRANSFORMERS:
            from moorage.engines.transformers.engine import Transformers

            return Transformers()
        case EngineName.LLAMA_CPP:
            from moorage.engines.llama_cpp.engine import LlamaCpp

            return LlamaCpp()
        case EngineName.SGLANG:
            from moorage.engines.sglang.engine import Sglang

            return Sglang()
        case EngineName.TRITON:
            from moorage.engines.triton.engine import Triton

            return Triton()
        case EngineName.CUSTOM:
            from moorage.engines.custom import Custom

            return Custom()
    raise KeyError(name)


class _Engines(Mapping[EngineName, "Engine"]):
    def __getitem__(self, name: EngineName) -> Engine:
        return _engine(name)

    def __iter__(self) -> Iterator[EngineName]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


ENGINES: Mapping[EngineName, Engine] = _Engines()
