"""Reconciling hosts that become unreachable, and come back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import pinned
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import containers

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]


def reconcile(place: Workplace) -> dict[str, dict[str, Any]]:
    answer = place.json("reconcile", "--fleet", place.folder / "fleet.yaml")
    return {one["deed"]: one for one in answer["actions"]}


def test_a_host_that_is_away_is_marked_and_its_model_placed_elsewhere_until_it_is_back(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    fields = pinned(lifecycle_image)
    fields["placement"] = {"accelerators": 0, "ram": "64MiB"}
    place.run("deploy", place.spec(**fields, restart={"unreachable_seconds": 0}))
    [old] = place.releases()
    (first,) = (host for host in equipped.hosts if host.name == old.workloads[0].host)
    first.link.cut()
    try:
        assert reconcile(place)["mark unreachable"]["done"]
        assert place.releases()[0].state == "unreachable"
        replaced = reconcile(place)["replace"]
        assert replaced["done"], str(replaced)
    finally:
        first.link.mend()
    new, before = place.releases()
    assert new.state == "running"
    assert new.workloads[0].host != first.name
    done = reconcile(place)
    assert before.state == "superseded" or done["finish"]["done"]
    assert containers(first) == []
    assert {claim.release for claim in place.claims()} == {new.id}
    place.run("retire", place.named("tiny"))
    assert place.is_clean()
