"""The table of engines. Each is imported when it is first looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from moorage.spec import EngineName

if TYPE_CHECKING:
    from moorage.engines.base import Engine

CLASSES = {
    EngineName.VLLM: "vllm.engine:Vllm",
    EngineName.TRANSFORMERS: "transformers.engine:Transformers",
    EngineName.LLAMA_CPP: "llama_cpp.engine:LlamaCpp",
    EngineName.SGLANG: "sglang.engine:Sglang",
    EngineName.TRITON: "triton.engine:Triton",
    EngineName.CUSTOM: "custom:Custom",
}
"""Where the class of each engine is in this folder."""


class _Engines(Mapping[EngineName, "Engine"]):
    def __init__(self) -> None:
        self._imported: dict[EngineName, Engine] = {}

    def __getitem__(self, name: EngineName) -> Engine:
        if name not in self._imported:
            module, _, kind = CLASSES[name].partition(":")
            engine = getattr(import_module(f"moorage.engines.{module}"), kind)
            self._imported.setdefault(name, engine())
        return self._imported[name]

    def __iter__(self) -> Iterator[EngineName]:
        return iter(CLASSES)

    def __len__(self) -> int:
        return len(CLASSES)


ENGINES: Mapping[EngineName, Engine] = _Engines()
