"""What the user wants of memory: context, concurrency, and how accelerators are shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.memory.need import largest
from moorage.memory.options import wanted_concurrency
from moorage.models.profile import ModelProfile
from moorage.spec import ModelSpec, Policy

LEAST_CONTEXT = 8192
"""An `auto` context is shortened to what fits, and below this not for the sake of fitting."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """What the user wants of memory.

    Attributes:
        context: Longest context in tokens.
        stated: Whether the user wants exactly this context; else it may be shortened.
        concurrency: Requests of full context that the cache must hold at once.
        policy: Whether accelerators are shared or taken whole.
        utilization: Share of each accelerator that the user's arguments fix; 0 = they do not.
        attention_heads: Heads that the tensor-parallel ranks share evenly; 0 = unknown.
        vision_heads: Heads of the vision tower, likewise; 0 = there is none, or it is left out.
    """

    context: int
    stated: bool = False
    concurrency: int = 1
    policy: Policy = Policy.FITTED
    utilization: float = 0.0
    attention_heads: int = 0
    vision_heads: int = 0

    @property
    def least_context(self) -> int:
        """The shortest context that still serves the request."""
        return self.context if self.stated else min(self.context, LEAST_CONTEXT)

    def served_context(self, fits: Callable[[int], bool]) -> int:
        """The context of a seat: whole, else the longest that fits, and never below the least.

        Args:
            fits: Whether a context in tokens fits; where it does, a shorter one does too.
        """
        if self.stated or fits(self.context):
            return self.context
        return max(largest(fits, self.context), self.least_context)

    def capped_context(self, cap: int) -> int:
        """The context of a seat where a policy caps what the user does not state."""
        return self.context if self.stated else min(self.context, cap)


def memory_request(spec: ModelSpec, profile: ModelProfile) -> MemoryRequest:
    """The memory request of a spec and its engine arguments.

    Raises:
        Failure: `BAD_SPEC` when an argument is malformed.
    """
    args = spec.engine.arguments
    length = args.value("--max-model-len")
    stated = profile.context_origin == Origin.USER
    context = profile.context
    if length not in (None, "auto", "-1"):
        context, stated = args.whole_number("--max-model-len") or context, True
    return MemoryRequest(
        context=context,
        stated=stated,
        concurrency=wanted_concurrency(spec, context),
        policy=spec.placement.policy,
        utilization=_share(args.value("--gpu-memory-utilization")),
        attention_heads=profile.attention_heads or 0,
        vision_heads=0 if args.switch("--language-model-only") else profile.vision_heads or 0,
    )


def _share(text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: --gpu-memory-utilization {text} is no share between 0 and 1",
            suggestion="Leave it out: the smallest share that serves the spec is derived.",
        )
    return share
