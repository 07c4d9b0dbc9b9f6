"""A row that holds what nobody wrote is named, by `check` and by whatever reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import JSON

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.check import DECODERS, problems_of_content, problems_of_file
from moorage.adapters.ledger.locks import this_process
from moorage.adapters.ledger.tables import METADATA
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import LogPosition
from moorage.gateway.usage import Usage
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.releases.release import Restart
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_gateways import KEY, MAIN
from tests.builders import (
    NOON,
    REVISION,
    a_claim,
    a_fleet,
    a_measurement,
    a_release,
    a_spec,
    a_workload,
)

RELEASE = "tiny.v1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a row in every table."""
    path = tmp_path / "ledger.db"
    with closing(Ledger(f"sqlite:///{path}")) as ledger:
        release = ledger.releases.begin(a_spec(), REVISION, "run-1")
        ledger.claims.commit(release, (a_claim(),), a_fleet())
        ledger.workloads.put(release, a_workload("w1", release=release))
        ledger.releases.move(release, ReleaseState.STARTING)
        ledger.releases.take_over(a_release(release))
        ledger.locks.take_all(["tiny"], "token", this_process())
        ledger.repairs.keep(RepairRecord(release=release))
        ledger.unseen_hosts.keep({"gpu-1": (datetime.now(UTC), "away")}, set())
        ledger.measurements.record(release, [a_measurement(release=release)])
        ledger.gateways.put(MAIN)
        ledger.api_keys.add(KEY)
        used = Usage(caller="ann", model="tiny", day="2026-11-23", requests=2)
        ledger.usage.add("main", [used], LogPosition())
    return path


Use = Callable[[Ledger], object]


def read(ledger: Ledger) -> object:
    return ledger.releases.get(RELEASE)


def restart(ledger: Ledger) -> None:
    ledger.releases.add_restart(RELEASE, Restart(at=NOON, replicas=(0,), reason="died"))


def take(ledger: Ledger) -> object:
    return ledger.locks.take_all(["tiny"], "another", this_process())


CASES: dict[str, tuple[str, str, Use]] = {
    "cut record": ("releases SET record = '[1,2'", RELEASE, read),
    "no record": ("releases SET record = ''", RELEASE, read),
    "a list as record": ("releases SET record = '[1,2]'", RELEASE, read),
    "a list as record, written to": ("releases SET record = '[1,2]'", RELEASE, restart),
    "deep record": (f"releases SET record = '{'[' * 100_000}'", RELEASE, read),
    "cut spec": ("releases SET spec = '{'", RELEASE, read),
    "a number as spec": (
        "releases SET spec = '7'",
        RELEASE,
        lambda ledger: ledger.releases.specs([RELEASE]),
    ),
    "no time": ("releases SET created_at = 'noon'", RELEASE, read),
    "cut workload": ("workloads SET workload = '{\"name\"'", "w1", read),
    "a list as workload": ("workloads SET workload = '[]'", "w1", read),
    "a workload without an endpoint": (
        'workloads SET workload = \'{"role": "leader"}\'',
        "w1",
        lambda ledger: ledger.routes.routes(),
    ),
    "no such resource": (
        "claims SET resource = 'love'",
        "1",
        lambda ledger: ledger.claims.all(),
    ),
    "a blob as device": (
        "claims SET device = X'00'",
        "1",
        lambda ledger: ledger.claims.all(),
    ),
    "no owner": ("locks SET owner = '{}'", "tiny", take),
    "no such time": (
        "transitions SET at = 'noon' WHERE id = 1",
        "1",
        lambda ledger: ledger.releases.transitions(RELEASE),
    ),
    "no tokens": ("repairs SET tokens = 'x'", RELEASE, lambda ledger: ledger.repairs.all()),
    "unreachable, some time": (
        "sightings SET unseen_since = 'noon'",
        "gpu-1",
        lambda ledger: ledger.unseen_hosts.unseen(),
    ),
    "no measurement": (
        "measurements SET measured = '{'",
        "1",
        lambda ledger: ledger.measurements.of("LlamaForCausalLM"),
    ),
    "a word as share": (
        'releases SET canary = \'{"share": "half"}\'',
        RELEASE,
        lambda ledger: ledger.routes.routes(),
    ),
    "a word as port": (
        'gateways SET options = \'{"port": "x"}\'',
        "main",
        lambda ledger: ledger.gateways.all(),
    ),
    "a number as models": (
        "api_keys SET models = '7'",
        "ann",
        lambda ledger: ledger.api_keys.all(),
    ),
    "a word as count": (
        "usage SET requests = 'many'",
        "ann, tiny, 2026-11-23",
        lambda ledger: ledger.usage.since(""),
    ),
}


@pytest.mark.parametrize(("statement", "row", "use"), CASES.values(), ids=CASES)
def test_a_row_that_cannot_be_decoded_is_named(
    path: Path, statement: str, row: str, use: Use
) -> None:
    url = f"sqlite:///{path}"
    assert problems_of_content(url) == ()
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        assert own.execute(f"UPDATE {statement}").rowcount == 1
    named = f"row {row} of `{statement.split()[0]}` cannot be decoded"
    assert problems_of_file(path) == ()
    [problem] = problems_of_content(url)
    assert named in problem
    with closing(Ledger(url)) as ledger, pytest.raises(Failure) as caught:
        use(ledger)
    assert caught.value.cause is Cause.LEDGER_DAMAGED
    assert named in caught.value.detail


def test_every_table_that_holds_json_is_decoded() -> None:
    tables = METADATA.tables.values()
    assert {
        one for one in tables if any(isinstance(c.type, JSON) for c in one.c)
    } <= DECODERS.keys()


def test_a_record_of_another_version_is_no_damage(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("UPDATE releases SET record = '{\"id\": 7}'")
    assert problems_of_content(f"sqlite:///{path}") == ()
