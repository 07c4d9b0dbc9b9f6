"""The routing table that the ledger stands for."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moorage.adapters.gateway.config_files import scripts_code
from moorage.adapters.gateway.envoy_folder import LocalFolder
from moorage.adapters.gateway.table_reader import RETRY_SECONDS, TableReader
from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.gateway.gateway import GatewayOptions, LogPosition
from moorage.gateway.programs import HOST_FOLDER
from moorage.gateway.routes import route_table
from moorage.gateway.table import Backend, RoutingTable
from moorage.gateway.usage import Usage
from moorage.releases.release_row import ASLEEP, STOPPED_FIRST, SUPERSEDED
from moorage.releases.routing import Canary
from moorage.releases.states import ReleaseState
from tests.adapters.gateway.test_host_folder import host_folder
from tests.adapters.ledger.test_gateways import KEY
from tests.adapters.ledger.test_routes import started, switch
from tests.adapters.ledger.test_sleep import asleep
from tests.builders import a_container, a_fleet, a_plan, a_release, a_spec, a_workload

EXPOSED = GatewayOptions(bind="0.0.0.0")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        yield ledger


def test_models_that_serve_are_in_the_table_with_their_replicas(
    ledger: Ledger, tmp_path: Path
) -> None:
    reader = TableReader(ledger, LocalFolder(tmp_path))
    assert reader.read(GatewayOptions()).models == ()
    switch(ledger, started(ledger, replicas=2))
    [model] = reader.read(GatewayOptions()).models
    assert model.name == "tiny"
    assert model.backends == (
        Backend(release="tiny.v1", endpoints=("http://gpu-1:40000", "http://gpu-1:40001")),
    )
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING, "retired")
    assert reader.read(GatewayOptions()).models == ()


def test_how_replicas_are_chosen_is_as_the_spec_of_the_release_says(
    ledger: Ledger, tmp_path: Path
) -> None:
    switch(ledger, started(ledger, a_spec(routing="prefix-aware"), replicas=2))
    [model] = TableReader(ledger, LocalFolder(tmp_path)).read(GatewayOptions()).models
    assert model.backends[0].is_prefix_aware


def test_a_canary_has_its_share_and_is_stood_in_for_where_the_key_is_the_same(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_KEY", "sk-engine")
    reader = TableReader(ledger, LocalFolder(tmp_path))
    switch(ledger, started(ledger))
    second = started(ledger)

    def backends(secret: str) -> list[tuple[str, int, str, bool]]:
        ledger.routes.share(second, Canary(share=0.1, key_secret=secret))
        [found] = TableReader(ledger, LocalFolder(tmp_path)).read(GatewayOptions()).models
        return [
            (one.release, one.weight, one.stand_in, bool(one.key_file)) for one in found.backends
        ]

    assert backends("") == [("tiny.v1", 90, "", False), ("tiny.v2", 10, "tiny.v1", False)]
    assert backends("TINY_KEY") == [("tiny.v1", 90, "", False), ("tiny.v2", 10, "", True)]
    ledger.routes.share(second, None)
    [model] = reader.read(GatewayOptions()).models
    assert [one.release for one in model.backends] == ["tiny.v1"]


def test_callers_need_a_key_where_other_machines_reach_the_gateway(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.api_keys.add(KEY)
    reader = TableReader(ledger, LocalFolder(tmp_path))
    assert reader.read(EXPOSED).keys == (KEY,)
    assert reader.read(EXPOSED).requires_key
    assert not reader.read(GatewayOptions()).requires_key
    assert not reader.read(EXPOSED.model_copy(update={"open_access": True})).requires_key


def test_a_key_is_spent_when_its_tokens_of_today_are(ledger: Ledger, tmp_path: Path) -> None:
    ledger.api_keys.add(KEY.model_copy(update={"tokens": "1k/day"}))
    reader, today = TableReader(ledger, LocalFolder(tmp_path)), datetime.now(UTC)

    def use(day: datetime, tokens: int) -> RoutingTable:
        used = Usage(
            caller=KEY.name, model="tiny", day=f"{day:%Y-%m-%d}", requests=1, prompt_tokens=tokens
        )
        ledger.usage.add("main", [used], LogPosition())
        return reader.read(GatewayOptions())

    assert use(today - timedelta(days=2), 5_000).spent == ()
    assert use(today, 999).spent == ()
    table = use(today, 1)
    assert table.spent == (KEY.name,)
    assert table.day_ends
    assert table.day_ends > today


def keyed(ledger: Ledger) -> None:
    """A release whose engine asks for the key that the secret `TINY_KEY` holds."""
    identity = started(ledger)
    variable = Variable(name="VLLM_API_KEY", secret="TINY_KEY", origin=Origin.USER, reason="spec")
    plan = a_plan(a_container(environment=(variable,)), release=identity)
    created = ledger.releases.get(identity).created_at
    ledger.releases.take_over(a_release(identity, plan=plan, created_at=created))


def test_the_key_of_an_engine_is_in_a_file_that_only_its_user_reads(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_KEY", "sk-engine")
    keyed(ledger)
    [model] = TableReader(ledger, LocalFolder(tmp_path)).read(GatewayOptions()).models
    file = Path(model.backends[0].key_file)
    [secret] = json.loads(file.read_text())["resources"]
    assert secret["generic_secret"] == {"secret": {"inline_string": "Bearer sk-engine"}}
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "sk-engine" not in model.model_dump_json()


def test_a_model_whose_key_cannot_be_read_keeps_no_other_from_being_served(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(ledger)
    now = [0.0]
    reader = TableReader(ledger, LocalFolder(tmp_path), lambda: now[0])

    def missing(names: list[str]) -> dict[str, str]:
        raise Failure(Cause.SECRET_MISSING, names[0])

    monkeypatch.setattr("moorage.adapters.gateway.table_reader.read_secrets", missing)
    [model] = reader.read(GatewayOptions()).models
    assert model.backends == ()
    assert "TINY_KEY" in model.problem
    monkeypatch.setattr(
        "moorage.adapters.gateway.table_reader.read_secrets", lambda names: {names[0]: "sk"}
    )
    assert reader.read(GatewayOptions()).models == (model,)
    now[0] = RETRY_SECONDS + 1
    assert reader.read(GatewayOptions()).models[0].backends


def test_a_model_that_falls_asleep_and_wakes_is_in_every_table(
    ledger: Ledger, tmp_path: Path
) -> None:
    release = started(ledger)
    switch(ledger, release)
    ended, errors = threading.Event(), list[BaseException]()

    def sleep_and_wake() -> None:
        try:
            while not ended.is_set():
                ledger.releases.move(release, ReleaseState.STOPPING, f"{ASLEEP}: no request")
                ledger.releases.end(release, ReleaseState.ASLEEP, f"{ASLEEP}: no request")
                ledger.claims.commit(release, [], a_fleet(), to=ReleaseState.WAKING)
                ledger.releases.move(release, ReleaseState.RUNNING, "woken")
        except BaseException as error:
            errors.append(error)

    reader = TableReader(ledger, LocalFolder(tmp_path))
    changing = threading.Thread(target=sleep_and_wake)
    changing.start()
    tables = [reader.read(GatewayOptions()) for _ in range(300)]
    ended.set()
    changing.join()
    assert not errors
    found = Counter(tuple(one.held for one in table.models) for table in tables)
    assert found.keys() == {("asleep",), ("",)}


def test_a_gateway_on_another_host_does_not_ask_its_own_loopback(
    ledger: Ledger, tmp_path: Path
) -> None:
    reader = TableReader(ledger, host_folder(tmp_path))
    switch(ledger, started(ledger))
    [model] = reader.read(GatewayOptions()).models
    assert model.backends
    near = a_workload("near", release="tiny.v1", endpoint="http://127.0.0.1:40000", replica=0)
    ledger.workloads.put("tiny.v1", near)
    [model] = reader.read(GatewayOptions()).models
    assert (model.backends, "on another one" in model.problem) == ((), True)


def test_an_engine_with_another_protocol_gets_no_requests(ledger: Ledger, tmp_path: Path) -> None:
    switch(ledger, started(ledger))
    near = a_workload("near", release="tiny.v1", base_path="/v2", replica=0)
    for row in ledger.releases.of_model("tiny"):
        ledger.workloads.put(row.id, near)
        for workload in row.workloads:
            ledger.workloads.put(row.id, workload.model_copy(update={"base_path": "/v2"}))

    [model] = TableReader(ledger, LocalFolder(tmp_path)).read(GatewayOptions()).models

    assert (model.backends, "another protocol" in model.problem) == ((), True)


@pytest.mark.parametrize(
    "cause", [f"{ASLEEP}: no request", f"{SUPERSEDED} tiny.v2, {STOPPED_FIRST}"]
)
def test_no_request_waits_for_an_engine_with_another_protocol(
    cause: str, ledger: Ledger, tmp_path: Path
) -> None:
    switch(
        ledger, release := started(ledger, replicas=0), plan=a_plan(a_container(base_path="/v2"))
    )
    ledger.releases.move(release, ReleaseState.STOPPING, cause)
    reader = TableReader(ledger, LocalFolder(tmp_path))

    table = reader.read(GatewayOptions()).model_copy(update={"doorman": "/gateway/doorman.sock"})

    assert [bool(one.held) for one in table.models] == [True]
    assert "under /v2" in table.models[0].problem
    assert "doorman" not in str(route_table(table, scripts_code()))


def test_a_gateway_on_another_host_says_why_it_wakes_no_model(
    ledger: Ledger, tmp_path: Path
) -> None:
    asleep(ledger)
    found = TableReader(ledger, host_folder(tmp_path)).read(GatewayOptions())
    [model] = found.models
    assert (found.doorman, model.held) == ("", "asleep")
    assert "`moorage load tiny`" in model.problem
    served = str(route_table(found, scripts_code()))
    assert "`moorage load tiny`" in served
    assert "doorman" not in served


def test_the_key_of_an_engine_is_where_envoy_is(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_KEY", "sk-engine")
    keyed(ledger)
    reader = TableReader(ledger, host_folder(tmp_path))
    [model] = reader.read(GatewayOptions()).models
    file = Path(model.backends[0].key_file).relative_to(HOST_FOLDER)
    assert "sk-engine" in (tmp_path / file).read_text()
    assert not (tmp_path / "here").exists()
    reader.remove_key("tiny.v1")
    assert not (tmp_path / file).exists()
    reader.read(GatewayOptions())
    (tmp_path / file).unlink()
    reader.forget()
    reader.read(GatewayOptions())
    assert (tmp_path / file).exists()
