"""What an engine keeps for its next start is in its host's store, and outlives its releases."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.adapters.docker.helper_job import HelperJob, run_helper
from moorage.adapters.engines.engine_folders import make_remote_cache_folders
from moorage.adapters.hosts.remote_host import describe
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Mount
from moorage.inventory.access import parse_access
from moorage.inventory.fleet import Host
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE
from tests.builders import a_container
from tests.e2e.conftest import prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import a_spec
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import HELPER, containers, write_fleet

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]


@pytest.fixture
def seen(equipped: TestFleet) -> Iterator[HostSnapshot]:
    """A remote host as a survey sees it, with a store that is there."""
    host = equipped.hosts[2]
    store = host.daemon.folder / "kept"
    store.mkdir(exist_ok=True)
    written = {
        "name": host.name,
        "address": host.tls,
        "tls": {"certificates": str(equipped.certificates.client)},
        "bind": host.address,
    }
    snapshot = describe(Host.model_validate(written))
    yield snapshot.model_copy(update={"store": str(store), "helper_image": HELPER})
    forget_clients()


def keeping(host: HostSnapshot, **places: str) -> Any:
    mounts = tuple(
        Mount(source=f"{host.store}/cache/tiny/{name}", target=target, read_only=False, kept=True)
        for name, target in places.items()
    )
    return a_container(mounts=mounts)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_any_user_of_a_container_may_write_and_nobody_else_of_the_host(seen: HostSnapshot) -> None:
    spec = keeping(seen, one="/cache", plan="/cache/vllm/startup_plan")
    for _ in range(2):
        make_remote_cache_folders(seen, [spec])
        cache = Path(seen.store, "cache", "tiny")
        assert rights(cache) == 0o700
        inner = (cache / "one", cache / "one/vllm", cache / "one/vllm/startup_plan", cache / "plan")
        assert [rights(folder) for folder in inner] == [0o777] * 4


def test_a_store_may_belong_to_a_user_who_shares_it_with_nobody(seen: HostSnapshot) -> None:
    store = Path(seen.store)
    os.chown(store, 1234, 1234)
    store.chmod(0o700)
    make_remote_cache_folders(seen, [keeping(seen, one="/cache")])
    job = HelperJob(HELPER, ("ls", STORE), "keep", 20, folders={STORE: seen.store})
    assert "cache" in run_helper(parse_access(seen.address), job)


def test_a_link_of_an_engine_is_not_followed(seen: HostSnapshot) -> None:
    cache = Path(seen.store, "cache", "tiny", "linked")
    cache.mkdir(parents=True)
    other = Path(seen.store, "models")
    other.mkdir(mode=0o755)
    (cache / "vllm").symlink_to("/moorage-store/models")
    spec = keeping(seen, linked="/cache", plan="/cache/vllm/startup_plan")
    with pytest.raises(Failure, match="is a link") as caught:
        make_remote_cache_folders(seen, [spec])
    assert caught.value.cause is Cause.STORE_UNWRITABLE
    assert rights(other) == 0o755


def test_a_release_finds_what_the_one_before_it_kept(
    workplace: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    write_fleet(workplace, equipped, "tls")
    first = workplace.json("deploy", a_spec(workplace, lifecycle_image))["release"]
    assert "keep on w1" in [step["name"] for step in first["steps"]]
    (folder,) = kept_by(first)
    store = host.daemon.folder / "store" / "cache"
    assert Path(folder).parent == store / workplace.named("tiny")
    (container,) = containers(host)
    mounted = host.daemon.client().containers.get(container).attrs["Mounts"]
    assert [one["RW"] for one in mounted if one["Source"] == folder] == [True]
    Path(folder, "compiled").write_text("code")
    second = workplace.json("deploy", a_spec(workplace, lifecycle_image, context=64))["release"]
    assert kept_by(second) == [folder]
    workplace.run("retire", workplace.named("tiny"))
    assert Path(folder, "compiled").read_text() == "code"
    assert containers(host) == []
    assert not (workplace.home / "cache").exists()


def kept_by(release: dict[str, Any]) -> list[str]:
    (container,) = release["plan"]["containers"]
    return [mount["source"] for mount in container["mounts"] if mount["kept"]]
