"""A second KV cache in RAM, as it is asked for."""

from __future__ import annotations

from pydantic import Field

from moorage.common.input_value import InputValue
from moorage.common.units import Bytes


class ExtendedCacheSpec(InputValue):
    """Blocks of the KV cache that leave the accelerator are kept in RAM (LMCache)."""

    ram: Bytes | None = Field(
        None, gt=0, description="RAM on each host, in bytes or as `64GiB`; it wins over `ratio`."
    )
    ratio: float = Field(
        1.2, gt=0, description="RAM as a multiple of the accelerator memory claimed on the host."
    )
    chunk: int | None = Field(None, ge=1, description="Tokens of a chunk; empty = LMCache's own.")
