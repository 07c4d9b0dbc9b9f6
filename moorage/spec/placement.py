"""Settings of where a model may run, and of its memory where users know it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from moorage.common.units import Bytes
from moorage.common.values import InputValue
from moorage.spec.patterns import AcceleratorId, Kind, Name


class Strategy(StrEnum):
    """How hosts are chosen when several fit."""

    SPREAD = "spread"
    BINPACK = "binpack"


class Policy(StrEnum):
    """How much of an accelerator a model claims, and by which rules it is placed."""

    FITTED = "fitted"
    WHOLE = "whole"
    BASELINE = "baseline"


class PlacementSpec(InputValue):
    """Where the model may run."""

    cluster: Name | None = Field(
        None,
        description="Name of a Ray cluster in `clusters` of the fleet file. The model then runs as"
        " an application of Ray Serve there, on nodes that Ray chooses, and on no host.",
    )
    accelerators: (
        Literal["auto"]
        | Annotated[int, Field(ge=0, le=1024)]
        | Annotated[tuple[AcceleratorId, ...], Field(min_length=1)]
    ) = Field(
        "auto",
        description="Accelerators of each replica: `auto`, how many (0 = run on CPU), or a list"
        " of `host:type:index`, such as `gpu-1:cuda:0`.",
    )
    accelerators_per_replica: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None,
        description="How many of the listed accelerators each replica takes. Empty = all of them.",
    )
    accelerator_kinds: tuple[Kind, ...] = Field(
        (),
        description="Use only accelerators of these kinds: a type (`cuda`), a vendor (`nvidia`),"
        " or a product name with `*` for any text (`*H100*`). Empty = any.",
    )
    policy: Policy = Field(
        Policy.FITTED,
        description="`fitted` claims what context and concurrency need, so that small models share"
        " an accelerator; `whole` claims all that is free on the accelerators it takes, for the"
        " largest cache; `baseline` follows the rules of GPUStack's vLLM scheduler.",
    )
    strategy: Strategy = Field(
        Strategy.SPREAD,
        description="`spread` prefers the emptiest host, `binpack` the fullest that still fits.",
    )
    seed: int | None = Field(
        None, description="Breaks ties between equal hosts. Empty = the order of the fleet."
    )
    host_labels: dict[str, str] = Field(
        {},
        description='Use only hosts with all these labels, such as `{"site": "site-a"}`.',
    )
    across_hosts: bool = Field(
        False,
        description="Allow one replica to span several hosts if no single host fits and the engine"
        " can do it.",
    )
    hosts: Literal["auto"] | Annotated[int, Field(ge=1, le=64)] = Field(
        "auto",
        description="Hosts that each replica spans. `auto` = one, or with `across_hosts` as few as"
        " possible. On CPU every host is a rank of its own.",
    )
    overcommit: bool = Field(
        False,
        description="Take listed accelerators even if they are too full. The engine may then fail"
        " to start.",
    )
    partial_offload: bool = Field(
        False,
        description="Let some layers stay in RAM if the whole model does not fit on accelerators"
        " (llama.cpp). It then answers several times slower.",
    )
    cores: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = Field(
        "auto",
        description="Processor cores reserved for each replica on CPU; `auto` reserves none and"
        " shares what is not reserved.",
    )
    ram: Literal["auto"] | Bytes = Field(
        "auto",
        description="RAM reserved for each replica, in bytes or as `16GiB`. `auto` estimates it."
        " On CPU it is also the container's memory limit.",
    )

    @model_validator(mode="after")
    def _check_fields(self) -> PlacementSpec:
        if self.accelerators_per_replica and not isinstance(self.accelerators, tuple):
            raise ValueError("accelerators_per_replica: it goes with a list in `accelerators`")
        if self.policy == Policy.BASELINE and self.hosts != "auto":
            raise ValueError(
                "hosts: the policy `baseline` counts them itself; leave one of the two out"
            )
        if self.hosts == 1 and self.across_hosts:
            raise ValueError("hosts: 1 leaves nothing to `across_hosts`; leave one of the two out")
        return self


class ExtendedCacheSpec(InputValue):
    """Keep blocks of the KV cache that leave the accelerator in RAM (LMCache)."""

    ram: Bytes | None = Field(
        None, gt=0, description="RAM on each host, in bytes or as `64GiB`; it wins over `ratio`."
    )
    ratio: float = Field(
        1.2, gt=0, description="RAM as a multiple of the accelerator memory claimed on the host."
    )
    chunk: int | None = Field(None, ge=1, description="Tokens of a chunk; empty = LMCache's own.")


class MemorySpec(InputValue):
    """Known sizes that replace predicted ones, in bytes of one accelerator."""

    claim: Bytes | None = Field(
        None,
        gt=0,
        description="Bytes that the model takes of each accelerator in all. It wins over the"
        " prediction, and is required where nothing can be predicted.",
    )
    activation: Bytes | None = Field(
        None, description="Bytes for the intermediate results of the largest batch."
    )
    cuda_graphs: Bytes | None = Field(None, description="Bytes for captured CUDA graphs.")
    draft: Bytes | None = Field(
        None, description="Bytes for the draft model of speculative decoding, with its cache."
    )
    context: Bytes | None = Field(
        None,
        description="Bytes that the driver takes for each process, in addition to the engine's"
        " budget.",
    )
    nccl: Bytes | None = Field(
        None,
        description="Bytes for the communication between accelerators, in addition to the engine's"
        " budget.",
    )
