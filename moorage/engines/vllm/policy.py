"""Defaults on which our launch and that of the baseline differ on purpose."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Value


class Executor(StrEnum):
    """What joins the hosts of a replica."""

    RAY = "ray"
    NATIVE = "mp"


class LaunchPolicy(Value):
    """Whose defaults a launch follows.

    Attributes:
        executor: What joins hosts where the user does not say. vLLM needs no Ray since 0.18, and
            its images hold none.
        longest: Contexts beyond it are cut to it where the user states none; 0 = never.
        leader_rank: Whether the leader is told that its first rank is 0. vLLM ignores it until
            0.27; later it switches the way of load balancing (vLLM 0.28, `arg_utils.py`).
        overwrites: Whether what is derived wins over a variable of the user. A default never does.
    """

    executor: Executor = Executor.NATIVE
    longest: int = 0
    leader_rank: bool = False
    overwrites: bool = False


OURS = LaunchPolicy()
BASELINE = LaunchPolicy(
    executor=Executor.RAY,
    longest=8192,
    leader_rank=True,
    overwrites=True,
)
"""GPUStack's: Ray, 8192 tokens."""
