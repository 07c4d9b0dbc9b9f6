"""The parts that containers play in a replica."""

from enum import StrEnum


class Role(StrEnum):
    """Part that a container plays in a replica."""

    LEADER = "leader"
    FOLLOWER = "follower"
    RAY_HEAD = "ray-head"
    """Head of the Ray cluster that joins the hosts; runs next to the leader."""
