"""The states and the end of gateways that are elsewhere."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from moorage.adapters.gateway import lifecycle
from moorage.adapters.gateway.followed_routes import FollowedRoutes, revive_services
from moorage.adapters.gateway.lifecycle import gateway_states, take_down
from moorage.adapters.gateway.processes import GatewayProcesses, gateway_lock
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.locks import Owner
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.engines.launch import LaunchPlan
from moorage.gateway.gateway import Gateway, GatewayHost, GatewayOptions
from tests.adapters.ledger.test_routes import started, switch
from tests.builders import a_container, a_plan, a_release

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


def plan_with_secret(name: str) -> LaunchPlan:
    variable = Variable(name="HF_TOKEN", secret=name, origin=Origin.USER, reason="secrets")
    return a_plan(a_container(environment=(variable,)))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands in for the processes of this machine; each variable has its name as its value."""
    for name in ("TEAM_TLS", "TEAM_X", "OTHER"):
        monkeypatch.setenv(name, name)
    service = Mock(spec=ProcessRuntime)
    service.variables.return_value = {}
    monkeypatch.setattr("moorage.adapters.gateway.processes.ProcessRuntime", lambda _: service)
    return service


def handed_on(service: Mock) -> set[str]:
    return {name for name in service.start.call_args.args[1] if name.startswith(("TEAM", "OTHER"))}


def test_a_service_gets_the_variables_that_deployed_models_and_its_certificate_name(
    ledger: Ledger, tmp_path: Path, service: Mock
) -> None:
    switch(ledger, started(ledger), plan=plan_with_secret("TEAM_X"))
    row = gateway("main")
    options = row.options.model_copy(update={"tls_secret": "TEAM_TLS"})
    ledger.gateways.put(row.model_copy(update={"options": options}))
    assert revive_services(ledger, tmp_path) == ["main"]
    assert handed_on(service) == {"TEAM_TLS", "TEAM_X"}


@pytest.mark.parametrize(
    ("runs_with", "restarts"),
    [
        ({"TEAM_Y": "y"}, True),
        ({"TEAM_Y": "y", "TEAM_X": "of yesterday"}, True),
        ({"TEAM_X": "TEAM_X"}, False),
    ],
)
def test_a_service_without_a_variable_of_today_starts_again_and_keeps_the_others(
    tmp_path: Path, service: Mock, runs_with: dict[str, str], restarts: bool
) -> None:
    service.variables.return_value = runs_with
    processes, secrets = GatewayProcesses(tmp_path, "main"), ["TEAM_X", "TEAM_Y"]
    processes.start_service(secrets)  # by a reconcile, whose own variables may be older
    assert not service.stop.called
    processes.start_service(secrets, renew=True)
    assert service.stop.called == restarts
    assert not restarts or handed_on(service) == {"TEAM_X", "TEAM_Y"}


@pytest.mark.parametrize("runs_with", [{"TEAM_Y": "y"}, {"TEAM_X": "of yesterday"}])
def test_a_deploy_names_the_variables_that_a_gateway_lacks_for_it(
    ledger: Ledger, tmp_path: Path, service: Mock, runs_with: dict[str, str]
) -> None:
    identity = started(ledger)
    ledger.gateways.put(gateway("main"))
    service.variables.return_value = runs_with
    lines: list[str] = []
    routes = FollowedRoutes(ledger, tmp_path, lines.append)
    with ledger.locks.holding(gateway_lock("main"), wait_seconds=0):
        ledger.gateways.report("main", 100, {}, "")
        routes.switch(a_release(identity, plan=plan_with_secret("TEAM_X")))
    assert lines == [
        "gateway main lacks the variable TEAM_X, or has another value than this process, with"
        " which it would reach or wake tiny: `moorage gateway up --name main` hands it on"
    ]
