"""Whether an engine generates or pools.

Source: `config/model.py:_get_default_runner_type`, and in `model_executor/models/registry.py` the
classes behind the names.
"""

from __future__ import annotations

from moorage.memory.architectures import GENERATING_MODELS, POOLING_ENDINGS, POOLING_MODELS
from moorage.memory.facts import Facts


def pools(facts: Facts, runner: str) -> bool:
    """Whether the engine pools.

    Args:
        facts: The model.
        runner: Value of `--runner`: `auto`, `generate` or `pooling`.
    """
    if runner != "auto":
        return runner == "pooling"
    name = facts.architecture
    if name in POOLING_MODELS:
        return True
    return name.endswith(POOLING_ENDINGS) and not name.endswith(GENERATING_MODELS)
