"""Configuration files that a real Envoy reads, at the moments when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import QUIET_SECONDS, ConfigFiles
from moorage.adapters.gateway.envoy_folder import LocalFolder
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import GatewayOptions
from tests.gateway.conftest import RunningGateway
from tests.gateway.engine import TestEngine
from tests.gateway.tables import backend, model, table


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    running = RunningGateway(tmp_path / "gateway")
    yield running
    running.close()


@pytest.mark.process
def test_no_other_machine_reaches_a_model_before_keys_are_asked_for(
    gateway: RunningGateway,
) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        assert gateway.ask("llama").status_code == 200
        gateway.files.listen(GatewayOptions(bind="0.0.0.0", port=gateway.port), gateway.admin)
        assert gateway.ask("llama").status_code == 401


@pytest.mark.process
def test_envoy_that_starts_for_other_machines_asks_for_keys_at_once(tmp_path: Path) -> None:
    files = ConfigFiles(tmp_path, LocalFolder(tmp_path))
    files.apply(table(model("llama", backend("llama-1", 1))), None)
    files.listen(GatewayOptions(bind="0.0.0.0"), None)
    assert [one.requires_key for one in files.tables()] == [False, True]


@pytest.mark.process
def test_a_table_that_envoy_rejects_leaves_nothing_behind(gateway: RunningGateway) -> None:
    with TestEngine("one") as engine:
        served = gateway.serve(model("llama", backend("llama-1", engine.port)))
        nameless = table(model("broken", backend("", 1)))
        for _ in range(3):
            with pytest.raises(Failure) as caught:
                gateway.files.apply(nameless, gateway.admin)
            assert caught.value.cause == Cause.GATEWAY_REFUSED
        assert gateway.files.tables()[-1] == served
        assert nameless not in gateway.files.tables()
        assert gateway.ask("llama").status_code == 200
        gateway.serve(model("phi", backend("phi-1", engine.port)))
        assert gateway.ask("phi").status_code == 200


@pytest.mark.process
def test_envoy_that_starts_after_a_rejection_serves_what_it_served(gateway: RunningGateway) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        with pytest.raises(Failure):
            gateway.files.apply(table(model("broken", backend("", 1))), gateway.admin)
        gateway.restart()
        assert gateway.ask("llama").status_code == 200


class StillAdmin:
    """An Envoy that takes everything at once, with requests in flight as the test says."""

    def __init__(self) -> None:
        self.active: dict[str, int] = {}

    def active_requests(self) -> dict[str, int]:
        return self.active

    def rejections(self, file: str) -> int:  # noqa: ARG002
        return 0

    def await_version(self, *_: object) -> None:
        pass


def test_a_release_keeps_its_cluster_until_its_last_request_was_a_while_ago(tmp_path: Path) -> None:
    now = [100.0]
    files, still = ConfigFiles(tmp_path, LocalFolder(tmp_path), lambda: now[0]), StillAdmin()
    admin = cast(Admin, still)
    files.apply(table(model("llama", backend("llama-1", 40000))), None)
    files.apply(table(model("llama", backend("llama-2", 40001))), None)
    removed: list[str] = []

    def clusters() -> bool:
        return "llama-1" in (tmp_path / "config" / "clusters.json").read_text()

    still.active = {"llama-1": 2}
    assert (files.prune(admin), clusters()) == ({"llama-1": 2}, True)
    now[0] += 60
    assert (files.prune(admin), clusters()) == ({"llama-1": 2}, True)
    still.active = {}  # one may wait for its next try
    now[0] += QUIET_SECONDS / 2
    assert (files.prune(admin, removed.append), clusters(), removed) == ({}, True, [])
    now[0] += QUIET_SECONDS
    assert (files.prune(admin, removed.append), clusters(), removed) == ({}, False, ["llama-1"])
    assert [one.releases for one in files.tables()] == [{"llama-2"}]
