"""How many accelerators one replica takes, and what each of them does."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.spec.arguments import whole_number

SIZES = {
    "tensor": ("--tensor-parallel-size", "-tp"),
    "pipeline": ("--pipeline-parallel-size", "-pp"),
    "data": ("--data-parallel-size", "-dp"),
    "prefill_context": ("--prefill-context-parallel-size", "-pcp"),
}
"""vLLM's options by field. Decode-context parallelism reuses tensor ranks and adds none."""


class Parallelism(Value):
    """Sizes of the parallel dimensions; their product is the number of accelerators.

    Attributes:
        tensor: Ranks that share each layer.
        pipeline: Stages that share the layers.
        data: Copies of the whole model.
        prefill_context: Ranks that share the tokens of a prefill.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    prefill_context: int = 1

    @property
    def world(self) -> int:
        """Accelerators that one replica takes."""
        return prod((self.tensor, self.pipeline, self.data, self.prefill_context))

    def __str__(self) -> str:
        sizes = self.model_dump()
        parts = [f"{name.replace('_', '-')} {size}" for name, size in sizes.items() if size > 1]
        return " x ".join(parts) or "one accelerator"


def split_over_hosts(counts: Sequence[int], *, natively: bool = False) -> tuple[int, int]:
    """Tensor and pipeline sizes of the peer's rules where nobody states them.

    With Ray a stage is a host. Hosts that give different numbers cannot share layers evenly; every
    accelerator is a stage of its own then. Natively joined hosts hold a copy of the model each.

    Args:
        counts: Accelerators that each host gives.
        natively: Whether vLLM joins the hosts itself.
    """
    if natively and len(counts) > 1:
        return gcd(*counts), 1
    return (1, sum(counts)) if len(set(counts)) > 1 else (counts[0], len(counts))


def stated_parallelism(tokens: Sequence[str]) -> Parallelism | None:
    """What the user's arguments say; None when they say nothing about it.

    Raises:
        Failure: `BAD_SPEC` when a size is no positive number.
    """
    found = {name: whole_number(tokens, *flags) for name, flags in SIZES.items()}
    sizes = {name: size for name, size in found.items() if size is not None}
    for name, size in sizes.items():
        if size < 1:
            flag = SIZES[name][0]
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {flag} {size} must be positive",
                suggestion=f"Write `{flag}=2`, or leave it out: it is derived from the placement.",
            )
    return Parallelism(**sizes) if sizes else None
