"""What must hold for models on which nobody works, once the fleet was reconciled."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

import docker
import httpx

from moorage.engines.labels import LABEL_LEDGER, LABEL_MODEL
from moorage.releases.release_row import ReleaseRow, claims_of
from moorage.releases.states import SERVING, TRANSITIONS, ReleaseState
from tests.e2e.drill import HALF
from tests.e2e.workplace import Workplace
from tests.one_authority import NO_TLS

LEGAL = {(before, after) for before, states in TRANSITIONS.items() for after in states}
ANSWER_SECONDS = 30.0


def broken(place: Workplace, models: Collection[str], waits: Collection[str] = ()) -> list[str]:
    """What does not hold.

    Args:
        place: Whose ledger and containers.
        models: Models on which nobody works, by their names in specs.
        waits: Releases that are started again later, so that they need not run yet.
    """
    rows = {name: place.ledger.releases.of_model(name) for name in models}
    serving = [row for own in rows.values() for row in own if row.state in SERVING]
    return [
        *_states(place, rows),
        *_claims(place, models, serving),
        *_containers(place, models, serving, waits),
        *(f"{name} is locked by {owner}" for name, owner in _locks(place, models).items()),
        *_silent(row for row in serving if row.id not in waits),
    ]


def left_over(place: Workplace) -> list[str]:
    """Files that nobody is writing any more, with nothing at all in flight."""
    files = [file for half in HALF for file in place.home.rglob(half)]
    return [f"{file} is left over" for file in (*files, *(place.home / "run").glob("*"))]


def _states(place: Workplace, rows: dict[str, list[ReleaseRow]]) -> Iterator[str]:
    for name, own in rows.items():
        active = [row.id for row in own if row.state in SERVING]
        if len(active) > 1:
            yield f"{name} is served by {active}"
        for row in own:
            if row.state not in SERVING and row.state in _OPEN:
                yield f"{row.id} is {row.state}: {row.cause}"
            yield from _illegal(place, row)


_OPEN = {state for state, after in TRANSITIONS.items() if after}


def _illegal(place: Workplace, row: ReleaseRow) -> Iterator[str]:
    log = place.ledger.releases.transitions(row.id)
    for one in log:
        if (one.before, one.after) not in LEGAL:
            yield f"{row.id} went from {one.before} to {one.after}"
    states = [ReleaseState.PENDING, *(one.after for one in log)]
    if [one.before for one in log] != states[:-1] or states[-1] != row.state:
        yield f"{row.id} is {row.state} after {', '.join(states)}"
    if any(later.at < earlier.at for earlier, later in pairwise(log)):
        yield f"{row.id} went back in time"


def _claims(
    place: Workplace, models: Collection[str], serving: Iterable[ReleaseRow]
) -> Iterator[str]:
    wanted = {
        (row.id, one.host, one.resource, one.index, one.amount)
        for row in serving
        for one in claims_of(row)[1]
    }
    held = {
        (one.release, one.host, one.resource, one.index, one.amount)
        for one in place.claims()
        if one.release.rpartition(".v")[0] in models
    }
    yield from (f"{one} is claimed for nothing" for one in held - wanted)
    yield from (f"{one} is not claimed" for one in wanted - held)


def _containers(
    place: Workplace,
    models: Collection[str],
    serving: Iterable[ReleaseRow],
    waits: Collection[str],
) -> Iterator[str]:
    wanted = {one.name: one for row in serving if row.id not in waits for one in row.workloads}
    later = {one.name for row in serving if row.id in waits for one in row.workloads}
    found = {one["Names"][0].lstrip("/"): one for one in _listed(place, models)}
    yield from (f"container {name} is nobody's" for name in found.keys() - wanted.keys() - later)
    for name, workload in wanted.items():
        seen = found.get(name, {"State": "gone", "Id": workload.identity})
        if (seen["State"], seen["Id"]) != ("running", workload.identity):
            yield f"container {name} is {seen['State']}, {seen['Id']} for {workload.identity}"


def _listed(place: Workplace, models: Collection[str]) -> list[dict[str, Any]]:
    api = docker.from_env().api
    listed = api.containers(all=True, filters={"label": f"{LABEL_LEDGER}={place.ledger.identity}"})
    return [one for one in listed if one["Labels"][LABEL_MODEL] in models]


def _locks(place: Workplace, models: Collection[str]) -> dict[str, str]:
    return {name: own.note for name, own in place.ledger.locks.holders(sorted(models)).items()}


def _silent(rows: Iterable[ReleaseRow]) -> Iterator[str]:
    """What does not answer; what was started again only now has a moment."""
    give_up = time.monotonic() + ANSWER_SECONDS
    for row in rows:
        question = {"model": row.model, "prompt": "hello", "max_tokens": 1}
        for one in row.serving:
            while wrong := _asked(f"{one.endpoint}/v1/completions", question):
                if time.monotonic() > give_up:
                    yield f"{one.name}: {wrong}"
                    break
                time.sleep(0.2)


def _asked(url: str, question: dict[str, Any]) -> str:
    try:
        answer = httpx.post(url, json=question, timeout=5, trust_env=False, verify=NO_TLS)
    except httpx.HTTPError as error:
        return repr(error)
    return "" if answer.status_code == 200 else f"HTTP {answer.status_code}"
