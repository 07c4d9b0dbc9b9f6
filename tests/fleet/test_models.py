"""What hosts keep: listed with who uses it, copied between hosts, pruned, and mended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.fleet import TestFleet
from tests.fleet.stores import WEIGHTS, sent_to_hosts
from tests.hub.server import Hub

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]


@pytest.fixture
def hub(place: Workplace, equipped: TestFleet) -> Iterator[Hub]:
    files = {file.name: file.read_bytes() for file in place.model.iterdir()}
    with Hub({"acme/tiny": files}, address=equipped.network.address) as hub:
        place.environment["MOORAGE_HUB_ENDPOINT"] = hub.url
        yield hub


def spec(place: Workplace, image: str, host: str, name: str) -> Path:
    return place.spec(
        name,
        source="hf://acme/tiny",
        engine=container_engine(image),
        placement={"accelerators": 0, "ram": "64MiB", "host_labels": {"host": host}},
    )


def models(place: Workplace, *arguments: str) -> list[dict[str, Any]]:
    fleet = place.folder / "fleet.yaml"
    return [
        one
        for one in place.json("models", *arguments, "--fleet", fleet)
        if one["host"] != "local" and one["state"] == "complete"
    ]


def prune(place: Workplace, *arguments: str) -> list[dict[str, Any]]:
    return models(place, "prune", "--keep", "0", *arguments)


def test_what_is_used_stays_and_what_is_not_may_go(
    place: Workplace, equipped: TestFleet, lifecycle_image: str, hub: Hub
) -> None:
    first = place.json("deploy", spec(place, lifecycle_image, "w1", "one"))["release"]
    sent = sent_to_hosts(equipped, hub)
    second = place.json("deploy", spec(place, lifecycle_image, "w2", "two"))["release"]
    assert sent_to_hosts(equipped, hub) == sent  # nothing came from the hub for the second host
    steps = {step["name"]: step["summary"] for step in second["steps"]}
    assert "verified, from w1," in steps["stage on w2"]
    used = {one["host"]: one["used_by"] for one in models(place)}
    assert first["id"] in used["w1"]
    assert second["id"] in used["w2"]
    assert second["id"] not in used["w1"]
    assert prune(place, "--yes") == []
    place.run("retire", place.named("one"))
    assert [one["host"] for one in prune(place)] == ["w1"]
    assert len(models(place)) == 2  # only shown
    assert [one["host"] for one in prune(place, "--yes")] == ["w1"]
    assert [one["host"] for one in models(place)] == ["w2"]
    folder = Path(str(equipped.hosts[0].daemon.folder), "store/models/acme--tiny")
    assert list(folder.iterdir()) == []
    place.run("retire", place.named("two"))
    assert [one["host"] for one in prune(place, "--yes")] == ["w2"]


def test_what_engines_compiled_counts_for_the_host_where_it_lies(
    place: Workplace, equipped: TestFleet
) -> None:
    """D9, of hosts that are reached over the network."""
    kept = Path(str(equipped.hosts[0].daemon.folder), "store/cache/tiny/vllm-0.32.0-cuda-abc")
    kept.mkdir(parents=True)
    (kept / "kernel.so").write_bytes(b"x" * 100_000)
    fleet = place.folder / "fleet.yaml"
    hosts = place.json("engines", "show", "vllm", "--fleet", fleet)["hosts"]
    assert hosts["w1"]["disk"]["caches"] >= 100_000
    assert hosts["w2"]["disk"]["caches"] == 0


def test_damage_is_found_on_request_and_mended_by_the_next_deploy(
    place: Workplace, equipped: TestFleet, lifecycle_image: str, hub: Hub
) -> None:
    wanted = spec(place, lifecycle_image, "w3", "one")
    release = place.json("deploy", wanted)["release"]
    folder = equipped.hosts[2].daemon.folder / "store/models/acme--tiny" / release["revision"]
    damage(folder / WEIGHTS)
    fleet = place.folder / "fleet.yaml"
    checked = place.json("models", "verify", "--host", "w3", "--fleet", fleet, code=4)
    assert [one["damaged"] for one in checked] == [[WEIGHTS]]
    place.run("retire", place.named("one"))
    sent = sent_to_hosts(equipped, hub)
    again = place.json("deploy", wanted)["release"]
    assert sent_to_hosts(equipped, hub) - sent == (folder / WEIGHTS).stat().st_size
    assert again["revision"] == release["revision"]
    assert (folder / WEIGHTS).read_bytes() == (place.model / WEIGHTS).read_bytes()
    checked = place.json("models", "verify", "--host", "w3", "--fleet", fleet)
    assert [one["damaged"] for one in checked] == [[]]
    place.run("retire", place.named("one"))
    prune(place, "--yes")


def damage(path: Path) -> None:
    """Flip a bit as a failing disk would: size and time stay."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(before.st_size // 2)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
