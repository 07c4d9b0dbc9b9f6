"""Defaults on which our launch and that of the baseline differ on purpose."""

from __future__ import annotations

from enum import StrEnum

from moorage.values import Value


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
        silent: Whether the server is kept from reporting home and from asking the hub.
        leader_rank: Whether the leader is told that its first rank is 0. vLLM ignores it until
            0.27; later it switches the way of load balancing (vLLM 0.28, `arg_utils.py`).
        overwrites: Whether what is derived wins over a variable of the user. A default never does.
        seeded: Whether all processes of an extended cache hash alike: without that no block is
            found again (LMCache issue 1739).
    """

    executor: Executor = Executor.NATIVE
    longest: int = 0
    silent: bool = True
    leader_rank: bool = False
    overwrites: bool = False
    seeded: bool = True


OURS = LaunchPolicy()
BASELINE = LaunchPolicy(
    executor=Executor.RAY,
    longest=8192,
    silent=False,
    leader_rank=True,
    overwrites=True,
    seeded=False,
)
"""GPUStack's: Ray, 8192 tokens."""
