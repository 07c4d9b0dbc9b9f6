"""A ledger of the first moorage, with what it held, is brought to the newest schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, MetaData, insert, update

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.database import _connect, migrate_database, parsed_url
from moorage.adapters.ledger.migrations import MIGRATIONS
from moorage.common.failures import Failure
from moorage.releases.states import ReleaseState
from tests.builders import (
    NOON,
    REVISION,
    a_host,
    a_placement,
    a_release,
    a_spec,
    a_workload,
)

S = ReleaseState
RUNNING, ERROR, SCHEDULED = "tiny.v1", "tiny.v2", "other.v1"


def to_schema(engine: Engine, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """The first schema, with what a moorage of that time wrote."""
    engine = _connect(parsed_url(url))
    to_schema(engine, "0001")
    with engine.begin() as connection:
        fill(connection)
    yield engine
    engine.dispose()


@contextmanager
def migrated(url: str) -> Iterator[Ledger]:
    migrate_database(url)
    with closing(Ledger(url)) as ledger:
        yield ledger


def fill(connection: Connection) -> None:
    tables = MetaData()
    tables.reflect(connection)
    for identity, state in ((RUNNING, "running"), (ERROR, "error"), (SCHEDULED, "scheduled")):
        connection.execute(insert(tables.tables["releases"]).values(**_release(identity, state)))
    way = ("pending", "scheduled", "starting", "running")
    log = [(RUNNING, one, other) for one, other in pairwise(way)]
    # What happens at once is logged in turns.
    log[1:1] = [(ERROR, "pending", "scheduled"), (SCHEDULED, "pending", "scheduled")]
    log += [(ERROR, "scheduled", "error")]
    for number, (identity, before, after) in enumerate(log):
        row = {"release": identity, "from_state": before, "to_state": after}
        moment = NOON + timedelta(seconds=number)
        cause = "no-fit" if after == "error" else ""
        connection.execute(
            insert(tables.tables["transitions"]).values(**row, cause=cause, at=moment)
        )
    claim = {"release": RUNNING, "host": "local", "resource": "port", "index": 40000, "amount": 1}
    connection.execute(insert(tables.tables["claims"]).values(**claim))
    workload = a_workload().model_dump(mode="json")
    connection.execute(
        insert(tables.tables["workloads"]).values(name="w", release=RUNNING, workload=workload)
    )


def _release(identity: str, state: str) -> dict[str, Any]:
    model, number = identity.split(".v")
    placement = a_placement(a_spec(name=model), a_host())
    record = a_release(identity, spec=a_spec(name=model), placement=placement)
    return {
        "id": identity,
        "model": model,
        "number": int(number),
        "state": state,
        "spec_digest": a_spec().digest,
        "revision": REVISION,
        "flow_run_id": "run-1",
        "cause": "no-fit" if state == "error" else "",
        "created_at": NOON,
        "updated_at": NOON,
        "spec": a_spec(name=model).model_dump(mode="json"),
        "record": record.model_dump(mode="json") if state == "running" else None,
    }


def test_releases_keep_their_state_their_record_and_what_they_hold(
    engine: Engine,  # noqa: ARG001
    url: str,
) -> None:
    with migrated(url) as ledger:
        states = {row.id: row.state for row in ledger.releases.in_states(S)}
        assert states == {RUNNING: S.RUNNING, ERROR: S.ERROR, SCHEDULED: S.SCHEDULED}
        row = ledger.releases.get(RUNNING)
        assert row.release == a_release(RUNNING, placement=a_placement(a_spec(), a_host()))
        assert row.workloads == (a_workload(),)
        assert [claim.index for claim in ledger.claims.all()] == [40000]
        assert ledger.releases.get(ERROR).cause == "no-fit"


def test_what_was_logged_is_numbered_and_nothing_is_invented(
    engine: Engine,  # noqa: ARG001
    url: str,
) -> None:
    with migrated(url) as ledger:
        log = ledger.releases.transitions(RUNNING)
        transitions = [
            (one.sequence, one.before, one.after, one.at, one.flow_run_id) for one in log
        ]
        assert transitions == [
            (1, S.PENDING, S.SCHEDULED, NOON, ""),
            (2, S.SCHEDULED, S.STARTING, NOON + timedelta(seconds=3), ""),
            (3, S.STARTING, S.RUNNING, NOON + timedelta(seconds=4), ""),
        ]
        assert [one.cause for one in ledger.releases.transitions(ERROR)] == ["", "no-fit"]


def test_old_releases_live_on_under_the_new_rules(engine: Engine, url: str) -> None:  # noqa: ARG001
    with migrated(url) as ledger:
        ledger.releases.move(SCHEDULED, S.DOWNLOADING)
        ledger.releases.move(RUNNING, S.UNREACHABLE, "its host is away")
        with pytest.raises(Failure):
            ledger.releases.move(ERROR, S.RUNNING)
        ledger.releases.move(RUNNING, S.STOPPING)
        ledger.releases.end(RUNNING, S.STOPPED, "retired")
        assert [one.sequence for one in ledger.releases.transitions(RUNNING)] == [1, 2, 3, 4, 5, 6]
        assert ledger.claims.all() == ()


@pytest.mark.parametrize("later", [True, False])
def test_a_failure_is_settled_if_its_model_was_retired_later(
    engine: Engine, url: str, later: bool
) -> None:
    to_schema(engine, "0013")
    at = NOON + timedelta(hours=1 if later else -1)
    with engine.begin() as connection:
        retire(connection, at)
    with migrated(url) as ledger:
        assert ledger.releases.get(ERROR).retired_at == (at if later else None)
        assert ledger.releases.get(RUNNING).retired_at is None


def retire(connection: Connection, at: datetime) -> None:
    tables = MetaData()
    tables.reflect(connection)
    releases, transitions = tables.tables["releases"], tables.tables["transitions"]
    for number, (before, after) in enumerate(pairwise(("running", "stopping", "stopped")), 4):
        row = {"release": RUNNING, "sequence": number, "from_state": before, "to_state": after}
        more = {"cause": "retired", "at": at, "flow_run_id": ""}
        connection.execute(insert(transitions).values(**row, **more))
        connection.execute(update(releases).where(releases.c.id == RUNNING).values(state=after))
