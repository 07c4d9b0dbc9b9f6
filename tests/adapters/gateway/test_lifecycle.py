"""The states and the end of gateways that are elsewhere."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from moorage.adapters.gateway import lifecycle
from moorage.adapters.gateway.lifecycle import gateway_states, take_down
from moorage.adapters.gateway.processes import gateway_lock
from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.locks import Owner
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayHost, GatewayOptions

FAR = GatewayHost(name="gpu-1", address="tcp://192.0.2.1:2375", bind="192.0.2.1", helper_image="p")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as opened:
        yield opened


def gateway(name: str, host: GatewayHost | None = None) -> Gateway:
    image = "envoy" if host else ""
    options = GatewayOptions(bind=host.bind if host else "127.0.0.1", host=host, image=image)
    return Gateway(name=name, machine=platform.node(), options=options)


def test_a_host_that_does_not_answer_delays_no_other_gateway(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(lifecycle, "STATE_SECONDS", 0.3)
    monkeypatch.setattr("moorage.adapters.gateway.envoys.HostEnvoy.runs", lambda _: answer.wait())
    gateways = [gateway("far", FAR), gateway("near")]
    try:
        states = gateway_states(ledger, gateways, tmp_path)
    finally:
        answer.set()
    assert states == ["unknown: gpu-1 does not answer within 0.3 s", "down"]


def test_a_gateway_of_another_machine_is_removed_only_once_its_service_has_ended(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.gateways.put(Gateway(name="main", machine="box"))
    service = Owner(machine="boot id of box", pid=1, started_at=0)
    ledger.locks.take_all([gateway_lock("main")], "token", service)
    with pytest.raises(Failure, match="gateway main runs on box") as refused:
        take_down(ledger, tmp_path, "main")
    assert refused.value.cause == Cause.GATEWAY_REFUSED
    assert ledger.gateways.get("main")
    ledger.locks.drop("token")
    assert take_down(ledger, tmp_path, "main") == 0
    assert ledger.gateways.all() == ()


def test_a_gateway_of_this_machine_is_taken_down_though_the_machine_has_a_new_name(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.gateways.put(Gateway(name="main", machine="its former name"))
    with ledger.locks.holding(gateway_lock("main"), wait_seconds=0):
        assert take_down(ledger, tmp_path, "main") == 0
    assert ledger.gateways.all() == ()


def test_a_ledger_that_is_lost_meanwhile_is_a_failure(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> bool:
        raise Failure(Cause.LEDGER_UNAVAILABLE, "it is gone")

    monkeypatch.setattr(ledger.locks, "is_held", lost)
    with pytest.raises(Failure, match="it is gone"):
        gateway_states(ledger, [gateway("near")], tmp_path)
