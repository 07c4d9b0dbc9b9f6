"""What users state about memory: of the accelerators, and for an extended KV cache."""

from __future__ import annotations

from pydantic import Field

from moorage.common.units import Bytes
from moorage.common.values import InputValue


class ExtendedCacheSpec(InputValue):
    """Blocks of the KV cache that leave the accelerator are kept in RAM (LMCache)."""

    ram: Bytes | None = Field(
        None, gt=0, description="RAM on each host, in bytes or as `64GiB`; it wins over `ratio`."
    )
    ratio: float = Field(
        1.2, gt=0, description="RAM as a multiple of the accelerator memory claimed on the host."
    )
    chunk: int | None = Field(None, ge=1, description="Tokens of a chunk; empty = LMCache's own.")


class MemorySpec(InputValue):
    """Accelerator memory that you know better; the bytes of one accelerator each."""

    claim: Bytes | None = Field(
        None,
        gt=0,
        description="Bytes that the model takes of each accelerator in all. It wins over what is"
        " computed; needed where nothing can be computed.",
    )
    activation: Bytes | None = Field(
        None, description="Bytes for the intermediate results of the largest batch."
    )
    cuda_graphs: Bytes | None = Field(None, description="Bytes for captured CUDA graphs.")
    draft: Bytes | None = Field(
        None, description="Bytes for the draft model of speculative decoding, its cache included."
    )
    context: Bytes | None = Field(
        None,
        description="Bytes that the driver takes for each process, outside the engine's budget.",
    )
    nccl: Bytes | None = Field(
        None,
        description="Bytes for the communication between accelerators, outside the engine's"
        " budget.",
    )
