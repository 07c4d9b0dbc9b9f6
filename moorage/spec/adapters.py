"""LoRA adapters, as they are asked for."""

from __future__ import annotations

from pydantic import Field

from moorage.spec.patterns import DIRECTORY_PATTERN, Name
from moorage.values import Value


class AdapterSpec(Value):
    """A LoRA adapter that is served beside the model."""

    name: Name = Field(description="Name under which the adapter is asked for.")
    source: str = Field(
        pattern=DIRECTORY_PATTERN,
        description="`file://` and a directory that each host has, with `adapter_config.json`.",
    )
    rank: int | None = Field(
        None,
        ge=1,
        description="The adapter's rank (`r`); it is rounded up to one that the engine takes."
        " Empty = the engine's default, 16.",
    )
