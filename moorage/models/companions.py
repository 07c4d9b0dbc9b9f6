"""The model and what is loaded beside it, brought together."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.models.assets import Asset
from moorage.models.source import Companion, ResolvedModel


def brought_together(assets: Sequence[Asset], found: Sequence[ResolvedModel]) -> ResolvedModel:
    """The model with its companions.

    Args:
        assets: As `assets_of` gives them, the model first.
        found: Each of them, resolved or staged.
    """
    model, *others = found
    companions = tuple(
        Companion(role=asset.role, name=asset.name, model=other)
        for asset, other in zip(assets[1:], others, strict=True)
    )
    return model.model_copy(update={"companions": companions})
