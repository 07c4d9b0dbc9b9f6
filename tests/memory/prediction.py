"""The exact prediction of a checkpoint, or the refusal."""

from collections.abc import Mapping

from moorage.common.refusal import Refusal
from moorage.memory.need import MemoryPrediction
from moorage.memory.options import MemorySettings
from moorage.memory.predict import exact_prediction
from moorage.memory.refusal import caught
from moorage.memory.weights import Tensors
from moorage.models.config import Config
from moorage.models.source import TensorHeader


def predict_memory(
    config: Config, tensors: Mapping[str, TensorHeader], settings: MemorySettings
) -> MemoryPrediction | Refusal:
    return caught(lambda: exact_prediction(config, Tensors(tensors), settings))
