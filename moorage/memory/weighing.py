"""The weights of one model, weighed once for each way of spreading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.memory.facts import Facts
from moorage.memory.lora import lora_bytes
from moorage.memory.names import take_apart
from moorage.memory.options import MemoryOptions
from moorage.memory.predict import predict_memory
from moorage.memory.prediction import MemoryPrediction
from moorage.memory.refusal import MemoryRefusal, Refused, consistent, unknown
from moorage.memory.stages import stage_layers
from moorage.memory.weights import RememberedTensors
from moorage.models.source import WeightSummary
from moorage.models.tensors import TensorHeader

R = TypeVar("R")


class Weighed(Value):
    """Bytes of the parameters on one rank.

    Attributes:
        stages: Of each pipeline stage.
        adapters: Of the buffers for LoRA adapters, of each stage.
        exact: Whether they follow from tensor headers.
        adapters_exact: Whether the buffers do: those of experts depend on how vLLM merges them.
        reason: What was weighed.
    """

    stages: tuple[int, ...]
    adapters: tuple[int, ...]
    exact: bool
    adapters_exact: bool
    reason: str


class Scale:
    """Weighs a model, and remembers the result: a large one takes a second.

    Args:
        config: Configuration as the engine sees it.
        headers: Headers of the checkpoint; empty where its format has none.
        files: What is known of the weight files; it stands in for headers.
        options: What the spec says.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        headers: Mapping[str, TensorHeader],
        files: WeightSummary | None,
        options: MemoryOptions,
    ) -> None:
        self._config = config
        wanted = _without_towers(headers) if options.language_model_only else headers
        self._headers = RememberedTensors(wanted)
        self._files = files
        self._options = options
        self._known: dict[tuple[int, int], Weighed | MemoryRefusal] = {}

    def weigh(self, tensor: int, pipeline: int) -> Weighed:
        """Weigh the ranks.

        Raises:
            Refused: When they cannot be spread like this, or nothing is known of them.
        """
        key = (tensor, pipeline)
        if key not in self._known:
            self._known[key] = caught(lambda: self._weigh(tensor, pipeline))
        found = self._known[key]
        if isinstance(found, MemoryRefusal):
            raise Refused(found)
        return found

    def _weigh(self, tensor: int, pipeline: int) -> Weighed:
        facts, lora = Facts(self._config), self._options.lora
        if self._headers:
            stages = self._stages(tensor, pipeline)
            ranks = f" over {tensor} ranks" if tensor > 1 else ""
            reason = f"{len(self._headers)} tensors{ranks}"
        else:
            stages, reason = self._stages_of_files(facts, tensor, pipeline)
        adapters = (0,) * pipeline
        if lora is not None:
            adapters = lora_bytes(facts, self._headers, lora, tensor, pipeline)
        return Weighed(
            stages=stages,
            adapters=adapters,
            exact=bool(self._headers),
            adapters_exact=not facts.experts,
            reason=reason,
        )

    def _stages(self, tensor: int, pipeline: int) -> tuple[int, ...]:
        # Weights depend on no length; the shortest is always allowed.
        settings = self._options.settings(tensor, pipeline, 1, 1)
        found = numbers(predict_memory(self._config, self._headers, settings))
        return tuple(stage.weight_bytes for stage in found.stages)

    def _stages_of_files(
        self, facts: Facts, tensor: int, pipeline: int
    ) -> tuple[tuple[int, ...], str]:
        files = self._files
        if files is None or not files.bytes:
            raise unknown("there are no tensor headers")
        most = max(map(len, stage_layers(facts.layers, pipeline)))
        # float32 is cast to two bytes while it is loaded.
        size = files.bytes // (2 if facts.get("torch_dtype") == "float32" else 1)
        each = -(-size * most // (tensor * facts.layers))
        reason = f"{human_bytes(files.bytes)} of {files.family} files, whose tensors are not known"
        return (each,) * pipeline, reason


def _without_towers(headers: Mapping[str, TensorHeader]) -> dict[str, TensorHeader]:
    """With `--language-model-only` vLLM makes nothing for pictures and sound."""
    return {name: header for name, header in headers.items() if not take_apart(name).tower}


def caught(action: Callable[[], R]) -> R | MemoryRefusal:
    """A refusal as a value."""
    try:
        with consistent():
            return action()
    except Refused as refused:
        return refused.refusal


def numbers(found: MemoryPrediction | MemoryRefusal) -> MemoryPrediction:
    """The prediction.

    Raises:
        Refused: When there is none.
    """
    if isinstance(found, MemoryRefusal):
        raise Refused(found)
    return found
