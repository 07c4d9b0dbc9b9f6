"""Models come from a bucket to hosts that never see its keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moorage.adapters.sources import Keys, mirrors_of, source_for
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.bring_model import Delivery, bring
from moorage.adapters.transfer.host_store import Staged
from moorage.inventory.access import Access
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.assets import Asset
from moorage.models.pin import AssetRole
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.fleet.stores import there
from tests.hub.tiny import model

if TYPE_CHECKING:
    from tests.bucket import Bucket

pytest.importorskip("moto", reason="moto stands for S3 in these tests")
pytest.importorskip("boto3")

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

KEYS = Keys(s3=("an-id", "a-secret-key", ""))
ASSET = Asset(role=AssetRole.MODEL, name="tiny", source="s3://models/team/tiny")


@pytest.fixture
def bucket(equipped: TestFleet) -> Iterator[Bucket]:
    from tests.bucket import Bucket  # noqa: PLC0415  (needs moto)

    with Bucket(address=equipped.network.address) as bucket:
        bucket.put("team/tiny", model())
        yield bucket


def test_hosts_fetch_from_the_bucket_without_its_keys(
    equipped: TestFleet, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.files.pretrained._completed", lambda *_: None)
    settings = Settings(home=tmp_path, s3_endpoint=bucket.url)
    wanted = source_for(ASSET, settings, KEYS).resolve(ASSET)
    before, staged = len(bucket.requests), dict[str, Staged]()
    seen: list[str] = []

    def work(host: FleetHost) -> None:
        access = Access(address=host.tls, certificates=str(equipped.certificates.client))
        target = HostSnapshot(
            name=host.name,
            address=access.url,
            bind=host.address,
            store=str(host.daemon.folder),
            helper_image=HELPER,
        )

        def look(*_: int) -> None:
            for container in host.daemon.client().containers.list(all=True):
                seen.append(json.dumps(container.attrs) + container.logs().decode())

        mirrors, folder = mirrors_of(wanted, settings, KEYS, 60), host.daemon.folder / "models"
        delivery = Delivery(wanted, target, str(folder), mirrors, workers=4)
        staged[host.name] = bring(delivery, look, deadline_seconds=60, say=print)

    threads = [threading.Thread(target=work, args=(host,)) for host in equipped.hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    size = sum(file.size for file in wanted.files)
    assert {name: one.brought for name, one in staged.items()} == {
        host.name: {"s3": size} for host in equipped.hosts
    }
    expected = {file.name: model()[file.name] for file in wanted.files}
    assert all(there(one.path) == expected for one in staged.values())
    hosts = {host.address for host in equipped.hosts}
    request = [one for one in bucket.requests[before:] if one.client in hosts]
    assert len(request) == len(wanted.files) * len(equipped.hosts)
    assert {one.signed for one in request} == {"url"}
    assert not any("Signature" in text or "a-secret-key" in text for text in seen)
