"""How llama.cpp divides the layers of a model among accelerators (`--split-mode layer`).

Source: `llama_model::load_tensors` in `llama-model.cpp`. The output counts as one more layer, after
the last; the input stays in RAM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class LayerBytes:
    """Bytes of one layer, or of several."""

    weights: float
    cache: float = 0


def fullest(layers: Sequence[LayerBytes], ranks: int) -> LayerBytes:
    """The bytes of the fullest of `ranks` accelerators that get equal numbers of layers."""
    ends = [-(-len(layers) * rank // ranks) for rank in range(ranks + 1)]
    parts = [layers[start:end] for start, end in pairwise(ends)]
    sums = (LayerBytes(sum(o.weights for o in part), sum(o.cache for o in part)) for part in parts)
    return max(sums, key=lambda one: one.weights + one.cache)


def largest_share(layers: int, ranks: int) -> float:
    """The largest share of `layers` layers and their output that an accelerator gets."""
    return -(-(layers + 1) // ranks) / (layers + 1)
