"""A model that one host has is copied from there: the hub sends nothing for the second."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.transfer import bring_model
from moorage.adapters.transfer.bring_model import Delivery, bring, lend_model
from moorage.adapters.transfer.host_store import Staged
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.source import ResolvedModel
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.fleet.stores import WEIGHTS, contents, on_hub, there
from tests.hub.server import Hub
from tests.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.fleet,
    pytest.mark.usefixtures("no_helper_is_left"),
]

REPO = "acme/shared"
SIZE = 3_000_000


@pytest.fixture
def hub(equipped: TestFleet) -> Iterator[Hub]:
    with Hub({REPO: contents(SIZE)}, address=equipped.network.address) as hub:
        yield hub


def snapshot(fleet: TestFleet, host: FleetHost, **fields: Any) -> HostSnapshot:
    access = Access(address=host.tls, certificates=str(fleet.certificates.client))
    answer = {
        "name": host.name,
        "address": access.url,
        "bind": host.address,
        "port_range": (18000, 18039),
        "store": str(host.daemon.folder),
        "helper_image": HELPER,
        "shares_models": True,
    }
    return HostSnapshot.model_validate(answer | fields)


def brought(
    hub: Hub,
    wanted: ResolvedModel,
    to: HostSnapshot,
    lender: HostSnapshot | None = None,
    lines: list[str] | None = None,
) -> Staged:
    mirrors = [HubClient(wanted.source.removeprefix("hf://"), hub.url).mirror(wanted, 60)]
    delivery = Delivery(wanted, to, f"{to.store}/models", mirrors, lender, workers=4)
    say = (lines if lines is not None else []).append
    return bring(delivery, lambda *_: None, deadline_seconds=90, say=say)


def test_the_hub_sends_nothing_to_the_second_host(equipped: TestFleet, hub: Hub) -> None:
    first, second, _ = (snapshot(equipped, host) for host in equipped.hosts)
    wanted = on_hub(hub, REPO)
    assert brought(hub, wanted, first).brought == {"hub": SIZE + 2}
    request = len(hub.requests)
    staged = brought(hub, wanted, second, first)
    assert staged.brought == {"w1": SIZE + 2}
    assert hub.requests[request:] == []
    assert there(staged.path) == hub.commits[REPO][wanted.revision]


def test_without_the_token_nothing_is_lent(equipped: TestFleet, hub: Hub) -> None:
    lender = snapshot(equipped, equipped.hosts[0])
    wanted = on_hub(hub, REPO)
    brought(hub, wanted, lender)
    with lend_model(lender, f"{lender.store}/models", wanted) as mirror:
        url, headers = mirror["urls"][WEIGHTS], mirror["headers"]
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Bearer no"}).status_code == 401
        outside = url.replace(WEIGHTS, "..%2f..%2f..%2fetc%2fpasswd")
        assert httpx.get(outside, headers=headers).status_code == 404
        (container,) = equipped.hosts[0].daemon.client().containers.list()
        token = headers["Authorization"].removeprefix("Bearer ")
        assert token not in json.dumps(container.attrs)
        assert token not in container.logs().decode()
        part = httpx.get(url, headers=headers | {"Range": f"bytes={SIZE - 10}-"})
        assert part.status_code == 206
        assert part.content == hub.commits[REPO][wanted.revision][WEIGHTS][-10:]


def test_a_lender_that_is_damaged_is_left_for_the_hub(equipped: TestFleet, hub: Hub) -> None:
    first, _, third = (snapshot(equipped, host) for host in equipped.hosts)
    hub.push(REPO, contents(SIZE))
    wanted = on_hub(hub, REPO)
    path = Path(brought(hub, wanted, first).path)
    (path / WEIGHTS).write_bytes(os.urandom(SIZE))
    before = hub.sent(WEIGHTS)
    staged = brought(hub, wanted, third, first)
    assert hub.sent(WEIGHTS) - before == SIZE  # small files may come from either
    assert there(staged.path) == hub.commits[REPO][wanted.revision]


def test_a_lender_that_is_gone_is_passed_over(
    equipped: TestFleet, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring_model, "ASK_SECONDS", 2)
    hub.push(REPO, contents(SIZE))
    first, second, _ = (snapshot(equipped, host) for host in equipped.hosts)
    wanted = on_hub(hub, REPO)
    lines: list[str] = []
    equipped.hosts[0].link.cut()
    try:
        staged = brought(hub, wanted, second, first, lines)
    finally:
        equipped.hosts[0].link.mend()
    assert staged.brought == {"hub": SIZE + 2}
    assert "w1 has hf://acme/shared and cannot lend it" in lines[0]


def test_what_is_cut_half_way_goes_on_from_the_hub(equipped: TestFleet, hub: Hub) -> None:
    first, second, _ = (snapshot(equipped, host) for host in equipped.hosts)
    hub.push(REPO, contents(SIZE))
    wanted = on_hub(hub, REPO)
    path = Path(brought(hub, wanted, first).path)
    (path / WEIGHTS).write_bytes(hub.commits[REPO][wanted.revision][WEIGHTS][: SIZE // 2])
    before = hub.sent(WEIGHTS)
    staged = brought(hub, wanted, second, first)
    assert there(staged.path) == hub.commits[REPO][wanted.revision]
    assert hub.sent(WEIGHTS) - before == SIZE - SIZE // 2
    half = SIZE // 2
    # The small file may come from either.
    assert staged.brought in ({"w1": half + 2, "hub": half}, {"w1": half, "hub": half + 2})


def test_a_lender_ends_when_nobody_asks(
    equipped: TestFleet, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring_model, "IDLE_SECONDS", 1)
    lender = snapshot(equipped, equipped.hosts[0])
    wanted = on_hub(hub, REPO)
    brought(hub, wanted, lender)

    def lose(*_: object) -> None:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "this machine is gone")

    with lend_model(lender, f"{lender.store}/models", wanted):
        monkeypatch.setattr(bring_model, "connect", lose)
    client = equipped.hosts[0].daemon.client()
    until(lambda: client.containers.list(all=True) == [])
