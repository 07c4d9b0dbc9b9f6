"""The table of engines. Each engine is imported when it is first looked up."""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from moorage.spec import EngineName

if TYPE_CHECKING:
    from moorage.engines.base import Engine


@cache
def _vllm() -> Engine:
    from moorage.engines.vllm.engine import Vllm

    return Vllm()


@cache
def _transformers() -> Engine:
    from moorage.engines.transformers.engine import Transformers

    return Transformers()


@cache
def _llama_cpp() -> Engine:
    from moorage.engines.llama_cpp.engine import LlamaCpp

    return LlamaCpp()


@cache
def _sglang() -> Engine:
    from moorage.engines.sglang.engine import Sglang

    return Sglang()


@cache
def _triton() -> Engine:
    from moorage.engines.triton.engine import Triton

    return Triton()


@cache
def _custom() -> Engine:
    from moorage.engines.custom import Custom

    return Custom()


ENGINE_OF: dict[EngineName, Callable[[], Engine]] = {
    EngineName.VLLM: _vllm,
    EngineName.TRANSFORMERS: _transformers,
    EngineName.LLAMA_CPP: _llama_cpp,
    EngineName.SGLANG: _sglang,
    EngineName.TRITON: _triton,
    EngineName.CUSTOM: _custom,
}


class _Engines(Mapping[EngineName, "Engine"]):
    def __getitem__(self, name: EngineName) -> Engine:
        return ENGINE_OF[name]()

    def __iter__(self) -> Iterator[EngineName]:
        return iter(ENGINE_OF)

    def __len__(self) -> int:
        return len(ENGINE_OF)


ENGINES: Mapping[EngineName, Engine] = _Engines()
