"""Those who change the config of one Ray cluster wait for each other as long as it takes."""

from __future__ import annotations

from moorage.adapters.hosts.runtime import CONFIG_WAIT_SECONDS
from moorage.adapters.ray.dashboard import ASK_SECONDS, PUT_SECONDS


def test_a_change_of_a_cluster_waits_out_another_one_that_starts_serve() -> None:
    """The first application of a cluster may take all of `PUT_SECONDS`."""
    assert CONFIG_WAIT_SECONDS > ASK_SECONDS + PUT_SECONDS
