"""LoRA adapters, as they are asked for."""

from __future__ import annotations

from pydantic import Field

from moorage.common.values import InputValue
from moorage.spec.patterns import Name, Revision, Source


class AdapterSpec(InputValue):
    """A LoRA adapter that is served beside the model."""

    name: Name = Field(description="Name under which the adapter is asked for.")
    source: Source = Field(
        description="Where the adapter comes from: `hf://org/repo`, `s3://...` or `file://...`, as"
        " for the model. It has `adapter_config.json` and `adapter_model.safetensors`.",
    )
    revision: Revision | None = Field(
        None,
        description="Branch, tag or commit of the adapter on the hub; pinned to a commit when"
        " deployed. Empty = the default branch.",
    )
    rank: int | None = Field(
        None,
        ge=1,
        description="Rank to make room for; it is rounded up to one that the engine takes."
        " Empty = the adapter's own, which is the least that is taken.",
    )


class AdapterUpdatesSpec(InputValue):
    """Room for LoRA adapters that are loaded while the model serves."""

    max: int = Field(
        4,
        ge=1,
        le=64,
        description="Adapters that may be loaded at once, beside those of `lora`; the engine"
        " reserves memory for all of them when it starts.",
    )
    rank: int = Field(
        16,
        ge=1,
        le=512,
        description="Largest rank that such an adapter may have; it is rounded up to one that the"
        " engine takes.",
    )
