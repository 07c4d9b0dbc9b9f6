from __future__ import annotations

from moorage.placement.candidate import Candidate, Share


def test_the_leader_comes_first() -> None:
    leader, follower = Share("a", (0,), (10,)), Share("b", (1, 2), (10, 10), ram_bytes=5)
    assert Candidate("cuda", leader, (follower,)).shares == (leader, follower)
    assert Candidate("cuda", leader).shares == (leader,)
