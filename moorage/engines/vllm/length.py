"""The context that a server is started for."""

from __future__ import annotations

from moorage.common.values import Origin
from moorage.engines.launch import Flag
from moorage.engines.vllm.context import LaunchContext, Length
from moorage.engines.vllm.policy import LaunchPolicy


def length_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """`--max-model-len`; models that make images or speech have no such length."""
    length = context.length
    if length is None or context.omni:
        return ()
    tokens = ("--max-model-len", str(length.tokens))
    return (Flag(tokens=tokens, origin=length.origin, reason=length.reason),)


def capped_length(longest: int | None, policy: LaunchPolicy) -> Length | None:
    """A model's context under a policy that caps it; None = the engine's own choice is right.

    Args:
        longest: Context that the model was made for; None = unknown.
        policy: Whose cap.
    """
    if not policy.longest or not longest or longest <= policy.longest:
        return None
    reason = f"of {longest} tokens, as many as the policy allows"
    return Length(tokens=policy.longest, origin=Origin.DERIVED, reason=reason)
