"""A large home: a ledger of many releases, some of which serve on simulated hosts.

Rows are written in bulk, but change states like real releases: the ledger's triggers check each
transition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, insert, literal, select, update

from benchmarks.fleets import a_fleet
from moorage.adapters.ledger import Ledger, tables
from moorage.adapters.ledger.claims import insert_claims
from moorage.adapters.ledger.database import open_database
from moorage.adapters.ledger.verdicts import split_verdicts
from moorage.engines.launch import planned_workload
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.placement.demand import Subject
from moorage.placement.placement import Placed, Placement
from moorage.placement.propose import propose
from moorage.releases.release import Release, StepRecord
from moorage.releases.release_row import release_id
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_model, a_profile, a_release, a_spec, an_image

LIFE = (
    *(ReleaseState.PENDING, ReleaseState.ANALYZING, ReleaseState.SCHEDULED),
    *(ReleaseState.DOWNLOADING, ReleaseState.STARTING, ReleaseState.RUNNING),
    *(ReleaseState.STOPPING, ReleaseState.SUPERSEDED),
)
"""The states of a release, up to the time when its successor serves."""

OLD_FLEET = 50
"""Number of hosts when all releases before the last ones were placed."""

STEPS = ("resolve", "derive", "survey", "place", "image", "stage", "plan", "launch", "verify")
AT_ONCE = 200
"""Number of rows per insert."""


class Served(NamedTuple):
    """A model, the number of its releases, and the host on which the last release serves."""

    model: str
    releases: int
    host: str
    address: str

    @property
    def id(self) -> str:
        """The id of the serving release."""
        return release_id(self.model, self.releases)


def make_home(url: str, models: Sequence[Served], hosts: int) -> list[Workload]:
    """Write the ledger of a fleet of `hosts` hosts; returns the running workloads."""
    with closing(Ledger(url)) as ledger:
        old, new = _Template(ledger.identity, OLD_FLEET), _Template(ledger.identity, hosts)
    records = {one.id: new.record(one) for one in models}
    engine = open_database(url)
    with engine.begin() as connection:
        _put(connection, tables.RELEASES, _rows(models, old, records))
        _put(connection, tables.VERDICTS, _verdicts(models, old, new))
        for number in range(1, max(one.releases for one in models) + 1):
            _move(connection, number, [one.id for one in models])
        for table, rows in _holdings(models, records).items():
            _put(connection, table, rows)
        for identity, record in records.items():
            placement = Placement.model_validate(record["placement"])
            insert_claims(connection, identity, placement.claims)
    engine.dispose()
    return [Workload.model_validate(record["workloads"][0]) for record in records.values()]


class _Template:
    """A record of a release that was placed on a fleet of `hosts` hosts."""

    MODEL, ID = "model-name", "model-name.v0"

    def __init__(self, ledger: str, hosts: int) -> None:
        record = _a_record(self.MODEL, self.ID, ledger, hosts).model_dump(mode="json")
        self.verdicts, record = split_verdicts(record)
        workload = record["workloads"][0]
        self._host, self._address = workload["host"], workload["address"]
        self._text = json.dumps(record)

    def record(self, one: Served, number: int = 0) -> dict[str, Any]:
        """The record for another release (by default a model's last one) on its host."""
        words = {
            self.ID: release_id(one.model, number or one.releases),
            self.MODEL: one.model,
            f'"address": "{self._address}"': f'"address": "{one.address}"',
            self._host: one.host,
        }
        text = self._text
        for word, other in words.items():
            text = text.replace(word, other)
        record: dict[str, Any] = json.loads(text)
        return record


def _a_record(model: str, release: str, ledger: str, hosts: int) -> Release:
    spec = a_spec(name=model, placement={"accelerators": 2}, engine={"name": "vllm"})
    snapshot, profile = a_fleet(hosts, 0), a_profile()
    placement = propose(Subject(spec, profile), snapshot, ENGINES)
    placed = Placed(spec, a_model(), profile, placement, snapshot, release)
    plan = plan_launch(placed, an_image(), ledger)
    workloads = [planned_workload(one) for one in plan.containers]
    return a_release(
        release,
        spec=spec,
        profile=profile,
        placement=placement,
        image=an_image(),
        plan=plan,
        workloads=tuple(one.model_copy(update={"identity": release}) for one in workloads),
        steps=tuple(StepRecord(name=name, seconds=1.5, summary="as planned") for name in STEPS),
    )


def _rows(
    models: Iterable[Served], old: _Template, records: Mapping[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    now = datetime.now(UTC)
    for one in models:
        for number in range(1, one.releases + 1):
            identity = release_id(one.model, number)
            record = records.get(identity) or old.record(one, number)
            yield {
                "id": identity,
                "model": one.model,
                "number": number,
                "state": ReleaseState.PENDING,
                "spec_digest": record["spec_digest"],
                "revision": REVISION,
                "flow_run_id": "",
                "cause": "",
                "created_at": now - timedelta(days=1) + timedelta(seconds=number),
                "updated_at": now,
                "spec": record["spec"],
                "record": record,
            }


def _verdicts(models: Iterable[Served], old: _Template, new: _Template) -> Iterator[dict[str, Any]]:
    for one in models:
        for number in range(1, one.releases + 1):
            placed = new if number == one.releases else old
            yield {"release": release_id(one.model, number), **placed.verdicts}


def _move(connection: Connection, number: int, last: Sequence[str]) -> None:
    """Move the n-th release of every model through its states; the last ones stay running."""
    own = tables.RELEASES.c
    for sequence, (before, after) in enumerate(pairwise(LIFE), 1):
        moved = [own.number == number, own.state == before]
        if before == ReleaseState.RUNNING:
            moved.append(own.id.not_in(last))
        values = {
            "release": own.id,
            "sequence": literal(sequence),
            "from_state": literal(before.value),
            "to_state": literal(after.value),
            "cause": literal(""),
            "at": own.created_at,
            "flow_run_id": literal(""),
        }
        logged = insert(tables.TRANSITION_LOG)
        connection.execute(logged.from_select([*values], select(*values.values()).where(*moved)))
        connection.execute(update(tables.RELEASES).where(*moved).values(state=after))


def _holdings(
    models: Iterable[Served], records: Mapping[str, dict[str, Any]]
) -> dict[Table, list[dict[str, Any]]]:
    """Rows for the serving releases: workloads, hosts, and successful probes."""
    held: dict[Table, list[dict[str, Any]]] = {
        table: [] for table in (tables.WORKLOADS, tables.HOSTS, tables.REPAIRS)
    }
    for one in models:
        workload = records[one.id]["workloads"][0]
        row = {"name": workload["name"], "workload": workload}
        held[tables.WORKLOADS].append({**row, "release": one.id})
        where = {"machine": one.address, "address": one.address, "capacity": []}
        held[tables.HOSTS].append({"name": one.host, **where})
        held[tables.REPAIRS].append(
            {
                "release": one.id,
                "attempts": 0,
                "elsewhere": 0,
                "failure": "",
                "probed_at": datetime.now(UTC),
                "missed": 0,
                "tokens": {},
            }
        )
    return held


def _put(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    waiting = iter(rows)
    while some := list(islice(waiting, AT_ONCE)):
        connection.execute(insert(table), some)
