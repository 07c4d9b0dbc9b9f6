"""On which pipeline stages each tensor lies.

Source: the constructors in `model_executor/models/`, `make_layers` and `PPMissingLayer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.memory.architectures import ON_EVERY_STAGE, Part
from moorage.memory.facts import Facts
from moorage.memory.names import TensorName
from moorage.memory.refusal import unknown
from moorage.memory.sharding import Split, split_of

HEADS = ("lm_head", "embed_out", "output_layer", "output")

PARTS = {
    **dict.fromkeys(("wte", "wpe", "project_in", "conv1", "conv2"), Part.EMBEDDING),
    "per_layer_model_projection": Part.EMBEDDING,
    "per_layer_projection_norm": Part.EMBEDDING,
    **dict.fromkeys(("ln_f", "embedding_norm", "project_out", "score", "classifier"), Part.NORM),
}
"""Parts by the last name of a module, where the name does not give it away."""


def stages_of(facts: Facts, name: TensorName, tied: bool, stages: Sequence[range]) -> Sequence[int]:
    """Numbers of the stages that hold a tensor.

    Args:
        facts: The model.
        name: Name of the tensor.
        tied: Whether the head is the embedding.
        stages: Layers of each stage.

    Raises:
        Refused: When no rule knows.
    """
    every = range(len(stages))
    if len(stages) == 1:
        return every
    if name.layer is not None:
        return [i for i in every if name.layer in stages[i]]
    if name.tower:
        return every
    part = _part(facts, name)
    if part in ON_EVERY_STAGE.get(facts.architecture, frozenset()):
        return every
    if part is Part.EMBEDDING:
        return sorted({0, len(stages) - 1}) if tied else [0]
    if part is Part.OTHER:
        raise unknown(f"on which pipeline stages {name.module!r} lies is not known")
    return [len(stages) - 1]


def _part(facts: Facts, name: TensorName) -> Part:
    if name.last in HEADS:
        return Part.HEAD
    if part := PARTS.get(name.last):
        return part
    if split_of(name, facts.model_type) is Split.VOCABULARY or "emb" in name.module:
        return Part.EMBEDDING
    if "norm" in name.last.lower():
        return Part.NORM
    return Part.OTHER
