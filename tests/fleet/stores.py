"""Models on test hubs, and stores of test hosts."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.transfer.bring_model import job_of
from moorage.adapters.transfer.hand_over import workspace_name
from moorage.adapters.transfer.host_store import HostStore
from moorage.inventory.access import Access
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.hub.server import Hub

WEIGHTS = "model.safetensors"


def contents(size: int = 400_000) -> dict[str, bytes]:
    return {"config.json": b"{}", WEIGHTS: os.urandom(size)}


def store_on(fleet: TestFleet, host: FleetHost) -> HostStore:
    certificates = str(fleet.certificates.client)
    folder = host.daemon.folder / "models"
    return HostStore(Access(address=host.tls, certificates=certificates), HELPER, str(folder))


def on_hub(hub: Hub, repo: str) -> ResolvedModel:
    commit = hub.branches[repo]["main"]
    return model(f"hf://{repo}", commit, "", hub.commits[repo][commit])


def model(source: str, revision: str, path: str, files: dict[str, bytes]) -> ResolvedModel:
    return ResolvedModel(
        source=source,
        revision=revision,
        path=path,
        staged=False,
        files=tuple(
            ModelFile(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in files.items()
        ),
        config={},
        config_origin="config.json",
        weights=WeightSummary(family="safetensors", bytes=1),
    )


def stage(store: HostStore, wanted: ResolvedModel, url: str = "", seconds: float = 60) -> str:
    """Have a model there, from a hub or handed over; gives its directory."""
    mirrors = (
        [HubClient(wanted.source.removeprefix("hf://"), url).mirror(wanted, 60)] if url else []
    )
    workspace = workspace_name(store._access, wanted.revision)
    job = job_of(wanted, mirrors, workspace=workspace, workers=4, seconds=seconds, proxies={})
    return store.stage(wanted, job, lambda *_: None, seconds).path


def workspace_on(host: FleetHost, folder: str, commit: str) -> Path:
    """Where a host assembles a model of `store_on`."""
    name = workspace_name(Access(address=host.tls), commit)
    return host.daemon.folder / "models" / folder / name


def there(path: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(path).iterdir() if file.name[0] != "."}


def sent_to_hosts(fleet: TestFleet, hub: Hub) -> int:
    """Bytes of weights that the hub sent to hosts; who deploys reads the headers for itself."""
    hosts = {host.address for host in fleet.hosts}
    return sum(seen.sent for seen in hub.requests_for(WEIGHTS) if seen.client in hosts)
