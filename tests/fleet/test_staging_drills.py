"""What befalls models on their way to hosts, and on their disks: a clear cause, no harm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from moorage.adapters.transfer.hand_over import workspace_name
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.commands import run
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import HELPER, containers, described
from tests.fleet.stores import (
    WEIGHTS,
    contents,
    model,
    on_hub,
    sent_to_hosts,
    stage,
    store_on,
    there,
    workspace_on,
)
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.hub.tiny import safetensors
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

MIB = 1024**2
DISK = 64 * MIB
REPO = "acme/drilled"


@pytest.fixture
def small_disk(equipped: TestFleet) -> Iterator[Path]:
    """A small disk in the first host, for its store alone."""
    folder = equipped.hosts[0].daemon.folder
    file, place = folder / "small-disk", folder / "small"
    place.mkdir(exist_ok=True)
    run("truncate", "-s", DISK, file)
    run("mkfs.ext4", "-q", "-F", file)
    run("mount", "-o", "loop", file, place)
    yield place
    run("umount", "-l", place)
    file.unlink()


@pytest.fixture
def hub(equipped: TestFleet) -> Iterator[Hub]:
    with Hub({REPO: contents(2_000_000)}, address=equipped.network.address) as hub:
        yield hub


def spec(place: Workplace, image: str, host: str, name: str) -> Path:
    return place.spec(
        name,
        source=f"hf://{REPO}",
        engine=container_engine(image),
        placement={"accelerators": 0, "ram": "64MiB", "host_labels": {"host": host}},
    )


@pytest.mark.server
def test_a_disk_that_a_stranger_fills_half_way(
    workplace: Workplace, equipped: TestFleet, lifecycle_image: str, hub: Hub, small_disk: Path
) -> None:
    place, (first, second, _) = workplace, equipped.hosts
    hosts: list[dict[str, Any]] = [described(equipped, host, "tls") for host in equipped.hosts]
    hosts[0]["store"] = str(small_disk / "store")
    with Path(place.folder, "fleet.yaml").open("w") as file:
        YAML().dump({"hosts": hosts, "helper_image": HELPER}, file)
    place.environment["MOORAGE_HUB_ENDPOINT"] = hub.url
    weights = safetensors({"one": ("F32", [5_000_000])})
    files = {one.name: one.read_bytes() for one in place.model.iterdir()} | {WEIGHTS: weights}
    commit = hub.push(REPO, files)
    store = small_disk / "store/models/acme--drilled"
    growing = store / workspace_name(Access(address=first.tls), commit) / ".incomplete" / WEIGHTS
    hub.fail(WEIGHTS, Fault(pause=0.002))

    filled = place.start("deploy", spec(place, lifecycle_image, "w1", "filled"), "--json")
    other = place.start("deploy", spec(place, lifecycle_image, "w2", "other"), "--json")
    try:
        place.wait_until(lambda: growing.exists() and growing.stat().st_size > MIB)
        fill(small_disk / "stranger")
        output, errors = filled.communicate(timeout=PATIENCE_SECONDS)
        assert filled.returncode == 8, output + errors
        assert '"disk-full"' in output
        assert "w1: " in output
        assert "moorage models prune" in output
        output, errors = other.communicate(timeout=PATIENCE_SECONDS)
        assert other.returncode == 0, output + errors
        assert containers(first) == []
        assert len(containers(second)) == 1
        assert {claim.host for claim in place.claims()} == {"w2"}
        assert not (store / commit).exists()

        (small_disk / "stranger").unlink()
        hub.fail(WEIGHTS, None)
        had, before = growing.stat().st_size, sent_to_hosts(equipped, hub)
        fleet = place.folder / "fleet.yaml"
        fleet.write_text(fleet.read_text() + "share_models: false\n")
        place.run("deploy", spec(place, lifecycle_image, "w1", "filled"))
        assert sent_to_hosts(equipped, hub) - before == len(weights) - had
        assert (store / commit / WEIGHTS).read_bytes() == weights
    finally:
        for name in ("filled", "other"):
            place.run("retire", place.named(name), code=None)
    assert place.is_clean()


def test_a_server_that_ignores_ranges_does_not_spoil_what_goes_on(
    equipped: TestFleet, hub: Hub
) -> None:
    host, wanted = equipped.hosts[1], on_hub(hub, REPO)
    whole = hub.commits[REPO][wanted.revision]
    growing = workspace_on(host, "acme--drilled", wanted.revision) / ".incomplete" / WEIGHTS
    growing.parent.mkdir(parents=True)
    growing.write_bytes(whole[WEIGHTS][:700_000])
    hub.fail(WEIGHTS, Fault(ignore_range=True))
    assert there(stage(store_on(equipped, host), wanted, hub.url)) == whole
    assert hub.sent(WEIGHTS) == len(whole[WEIGHTS])


def test_weights_that_were_overwritten_on_the_disk_are_fetched_anew(
    equipped: TestFleet, hub: Hub
) -> None:
    host = equipped.hosts[2]
    hub.push(REPO, contents(1_000_000))
    wanted, store = on_hub(hub, REPO), store_on(equipped, host)
    path = Path(stage(store, wanted, hub.url))
    (path / WEIGHTS).write_bytes(os.urandom(1_000_000))
    before = hub.sent(WEIGHTS)
    assert there(stage(store, wanted, hub.url)) == hub.commits[REPO][wanted.revision]
    assert hub.sent(WEIGHTS) - before == 1_000_000


def test_a_local_directory_is_sent_anew_where_its_copy_was_overwritten(
    equipped: TestFleet, tmp_path: Path
) -> None:
    files = contents(200_000)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    wanted = model(f"file://{tmp_path}", "local-abc", str(tmp_path), files)
    unsummed = tuple(file.model_copy(update={"sha256": ""}) for file in wanted.files)
    wanted = wanted.model_copy(update={"files": unsummed})
    store = store_on(equipped, equipped.hosts[1])
    path = Path(stage(store, wanted))
    (path / WEIGHTS).write_bytes(os.urandom(200_000))
    with pytest.raises(Failure) as caught:
        stage(store, wanted)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT  # which is tried again
    assert caught.value.cause.retryable
    assert there(stage(store, wanted)) == files


def fill(path: Path) -> None:
    """Write until nothing is free."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
