from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from moorage.adapters.gateway import sleepers
from moorage.adapters.gateway.service import GatewayService
from moorage.adapters.gateway.sleepers import Sleepers
from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.gateway.idleness import Idle
from moorage.gateway.table import Backend, ModelRoute, RoutingTable
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.releases.release_row import STOPPED_FIRST, SUPERSEDED
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_routes import started, switch
from tests.builders import NOON, REVISION, a_host, a_placement, a_spec, a_workload

REFUSES = """import sys
print('{"error": {"cause": "no-fit", "detail": "too small"}}')
sys.exit(3)"""


async def test_a_model_whose_release_has_stopped_first_is_not_started_but_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", REFUSES))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        switch(ledger, started(ledger))
        new = started(ledger)
        ledger.releases.move(
            "tiny.v1", ReleaseState.STOPPING, f"{SUPERSEDED} {new}, {STOPPED_FIRST}"
        )
        waking = asyncio.create_task(Sleepers(ledger, tmp_path, tuple).wake("tiny"))
        await asyncio.sleep(0.3)
        assert not waking.done()
        switch(ledger, new, "tiny.v1")
        assert (await waking).release == new


@pytest.mark.parametrize(
    ("program", "cause", "words"),
    [
        (REFUSES, Cause.NO_FIT, "too small"),
        ("raise MemoryError('all gone')", Cause.INTERRUPTED, "`moorage unload` has ended: MemoryE"),
        ("import os; os.abort()", Cause.INTERRUPTED, "`moorage unload` has ended"),
    ],
)
async def test_a_command_that_fails_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, cause: Cause, words: str
) -> None:
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", program))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        with pytest.raises(Failure, match=words) as caught:
            await Sleepers(ledger, tmp_path, tuple).put_to_sleep("tiny", "idle")
        assert caught.value.cause is cause


IS_BUSY = """import os, sys
waits = os.environ.get("MOORAGE_LOCK_WAIT_SECONDS")
print('{"error": {"cause": "deploy-in-progress", "detail": "waits for %s s"}}' % waits)
sys.exit(7)"""


async def test_a_decision_that_a_model_is_idle_does_not_wait_for_a_flow_that_works_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", IS_BUSY))
    monkeypatch.setattr(Sleepers, "_idle_neighbours", lambda *_: ["tiny"])
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        own = Sleepers(ledger, tmp_path, tuple)
        with pytest.raises(Failure, match="waits for 0 s"):
            await own.put_to_sleep("tiny", "idle")
        assert not await own._make_room("other", give_up=0.0), "it may be free a moment later"


async def test_a_second_idle_model_makes_room_while_a_flow_works_on_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy = f"import sys\nif 'tiny' not in sys.argv: sys.exit(0)\n{IS_BUSY}"
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", is_busy))
    monkeypatch.setattr(Sleepers, "_idle_neighbours", lambda *_: ["tiny", "small"])
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        assert await Sleepers(ledger, tmp_path, tuple)._make_room("other", give_up=0.0)


def test_no_model_makes_room_from_another_accelerator(tmp_path: Path) -> None:
    host, spec = a_host(gpus=2), a_spec()
    before = a_placement(spec, host)
    [memory] = [one for one in before.claims if one.resource == Resource.ACCELERATOR]
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        switch(ledger, started(ledger, spec), placement=before, spec=spec)
        for state in (ReleaseState.STOPPING, ReleaseState.ASLEEP):
            ledger.releases.move("tiny.v1", state, "asleep")
        for index, model in enumerate(("near", "far")):
            ledger.releases.begin(a_spec(name=model), REVISION, "")
            claim = replace(memory, index=index)
            ledger.claims.commit(f"{model}.v1", [claim], FleetSnapshot(hosts=(host,)))
        idle = [Idle(model, f"{model}.v1", 60) for model in ("far", "near")]
        assert Sleepers(ledger, tmp_path, lambda: idle)._idle_neighbours("tiny") == ["near"]


async def test_nobody_waits_for_room_where_the_place_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = REFUSES.replace("no-fit", "place-gone").replace("too small", "gpu-1 has left")
    monkeypatch.setattr(sleepers, "COMMAND", (sys.executable, "-c", refuses))
    monkeypatch.setattr(Sleepers, "_make_room", lambda *_: pytest.fail("it waits for room"))
    opened = closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}"))
    with opened as ledger, pytest.raises(Failure, match="gpu-1 has left"):
        await Sleepers(ledger, tmp_path, tuple).wake("tiny")


async def test_no_request_goes_to_a_successor_that_speaks_another_protocol(tmp_path: Path) -> None:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        switch(ledger, release := started(ledger, replicas=0))
        near = a_workload("near", base_path="/v2", endpoint="http://gpu-1:40000")
        ledger.workloads.put(release, near)
        with pytest.raises(Failure, match="another protocol"):
            await Sleepers(ledger, tmp_path, tuple).wake("tiny")


@pytest.mark.parametrize(("doorman", "asleep"), [("/doorman.sock", ["tiny"]), ("", [])])
def test_a_gateway_puts_to_sleep_only_where_it_can_wake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doorman: str, asleep: list[str]
) -> None:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        service, slept = GatewayService(ledger, "main", tmp_path), Mock()
        monkeypatch.setattr(service, "_sleep", slept)
        monkeypatch.setattr(service, "_doorman_server", Mock())
        monkeypatch.setattr(service, "_envoy", Mock(**{"folder.doorman": doorman}))
        backend = Backend(release="tiny.v1", endpoints=("http://gpu-1:40000",))
        route = ModelRoute(name="tiny", backends=(backend,), keep_alive=0.0, since=NOON)
        monkeypatch.setattr(service, "_table", RoutingTable(models=(route,)))
        service._send_to_sleep(Mock(**{"traffic.return_value": {}}))
        assert [call.args[0] for call in slept.call_args_list] == asleep
