"""Four models for three hosts at once, killed half-way: repeating it costs only the rest."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from docker.errors import APIError

from moorage.adapters.transfer import hand_over, host_store
from moorage.engines.labels import LABEL_HELPER
from moorage.inventory.access import Access
from moorage.inventory.model_store import model_directory
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.fleet.stores import WEIGHTS, contents, on_hub, stage, store_on, there, workspace_on
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

SIZE = 1_500_000
REPOS = [f"acme/model-{number}" for number in range(4)]


@pytest.fixture
def hub(equipped: TestFleet) -> Iterator[Hub]:
    with Hub({repo: contents(SIZE) for repo in REPOS}, address=equipped.network.address) as hub:
        yield hub


def start(fleet: TestFleet, hub: Hub) -> subprocess.Popen[str]:
    """A process that stages every model on every host, all at once."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.fleet.stager"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdin
    for host in fleet.hosts:
        access = Access(address=host.tls, certificates=str(fleet.certificates.client))
        for repo in REPOS:
            job = {"access": access.url, "folder": str(folder(host)), "hub": hub.url}
            answer = on_hub(hub, repo).model_dump(mode="json")
            running.stdin.write(json.dumps(job | {"model": answer}) + "\n")
    running.stdin.close()
    return running


def folder(host: FleetHost) -> Path:
    return host.daemon.folder / "models"


def growing(fleet: TestFleet, hub: Hub) -> dict[tuple[str, str], int]:
    """Bytes of each model's weights that a host has, by its address and the model's commit."""
    found = {}
    for host in fleet.hosts:
        for repo in REPOS:
            (commit,) = hub.commits[repo]
            place = workspace_on(host, repo.replace("/", "--"), commit)
            sizes = [
                path.stat().st_size if path.exists() else 0
                for path in (place / WEIGHTS, place / ".incomplete" / WEIGHTS)
            ]
            found[host.address, commit] = max(sizes)
    return found


def kill_helpers(fleet: TestFleet) -> None:
    for host in fleet.hosts:
        found = host.daemon.client().containers.list(filters={"label": LABEL_HELPER})
        for container in found:
            with suppress(APIError):
                container.kill()


def test_killed_half_way_it_costs_only_the_rest(equipped: TestFleet, hub: Hub) -> None:
    hub.fail(WEIGHTS, Fault(pause=0.02))
    running = start(equipped, hub)
    whole = SIZE * len(REPOS) * len(equipped.hosts)
    until(lambda: sum(growing(equipped, hub).values()) > whole / 2, pause=0.02)
    running.kill()  # whoever started it first, so that nobody cleans up
    kill_helpers(equipped)
    running.wait()
    hub.fail(WEIGHTS, None)
    had = growing(equipped, hub)
    assert whole / 2 < sum(had.values()) < whole
    asked_before = len(hub.requests)
    again = start(equipped, hub)
    assert again.stdout
    output = again.stdout.read()
    again.wait()
    assert len(output.splitlines()) == len(had)
    served: Counter[str] = Counter()
    for seen in hub.requests[asked_before:]:
        served[seen.client] += seen.sent * (seen.file == WEIGHTS)
    rest = {host.address: 0 for host in equipped.hosts}
    for (address, _), size in had.items():
        rest[address] += SIZE - size
    assert served == rest  # to the byte, on each host
    for host in equipped.hosts:
        for repo in REPOS:
            (commit,) = hub.commits[repo]
            found = there(str(folder(host) / repo.replace("/", "--") / commit))
            assert sums(found) == sums(hub.commits[repo][commit])


def test_whose_starter_died_before_it_began_is_not_waited_for(
    equipped: TestFleet, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, repo = equipped.hosts[1], REPOS[0]
    hub.push(repo, contents(1000))
    store, wanted = store_on(equipped, host), on_hub(hub, repo)
    monkeypatch.setattr(hand_over, "FED_SECONDS", 3.0)
    client = host.daemon.client()
    place = model_directory(str(folder(host)), wanted.source, wanted.revision)
    client.containers.create(HELPER, ["true"], name=host_store.staging_name(place))
    began = time.monotonic()
    assert there(stage(store, wanted, hub.url)) == hub.commits[repo][wanted.revision]
    assert time.monotonic() - began < 20


def sums(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
