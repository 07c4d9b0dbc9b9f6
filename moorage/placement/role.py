"""The parts that containers play in a replica."""

from enum import StrEnum


class Role(StrEnum):
    """Part that a container plays in a replica."""

    LEADER = "leader"
    FOLLOWER = "follower"
    RAY_HEAD = "ray-head"
    """Beside the leader: the head of the Ray cluster that joins the hosts."""
