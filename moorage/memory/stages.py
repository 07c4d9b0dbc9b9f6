"""Which layers a pipeline stage runs. Source: `distributed/utils.py:get_pp_indices`."""

from __future__ import annotations


def stage_layers(layers: int, stages: int) -> tuple[range, ...]:
    """Spread decoder layers over pipeline stages.

    What remains goes to the stages from the last but one backwards: the last has the norm and
    the head, the first the embedding.

    Args:
        layers: Decoder layers of the model.
        stages: Pipeline stages.
    """
    counts = [layers // stages] * stages
    for back in range(2, layers % stages + 2):
        counts[-back] += 1
    starts = [sum(counts[:stage]) for stage in range(stages)]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))
