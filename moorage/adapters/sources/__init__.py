"""Sources of models: a hub, a bucket or a directory, behind one protocol."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from huggingface_hub import hf_hub_url

from moorage.adapters.secrets import read_secrets, remember
from moorage.adapters.sources.hub import HubSource
from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.hub_http import HubHttp
from moorage.adapters.sources.local import LocalSource
from moorage.adapters.sources.s3_client import S3Client
from moorage.adapters.sources.s3_http import S3Http
from moorage.adapters.sources.store import ModelStore
from moorage.adapters.system.settings import Settings
from moorage.inventory.model_store import HUB, S3, folder_name, is_local
from moorage.models.assets import Asset, AssetRole, SourceRequest, assets_of, require_rank
from moorage.models.files import layout_of
from moorage.models.source import ResolvedModel, join_companions
from moorage.spec import ModelSpec

HUB_TOKEN = "HF_TOKEN"
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by kind of source; without a key, requests are anonymous.

    Attributes:
        hub: Access token of the hub.
        s3: Key id, secret key and session token of an object store; empty = what AWS's own tools
            would find (environment, `~/.aws`, the machine's role), else unsigned requests.
    """

    hub: str | None = field(default=None, repr=False)
    s3: tuple[str, ...] = field(default=(), repr=False)


NO_KEYS = Keys()


def read_keys(spec: ModelSpec) -> Keys:
    """The keys that a spec names as secrets; of the hub, else the environment's.

    Raises:
        Failure: `SECRET_MISSING`.
    """
    token = _secret(spec, HUB_TOKEN) or os.environ.get(HUB_TOKEN)
    if token:
        remember({HUB_TOKEN: token})
    named = [_secret(spec, name) or "" for name in S3_KEYS]
    return Keys(hub=token, s3=tuple(named) if named[0] else ())


def _secret(spec: ModelSpec, variable: str) -> str | None:
    name = spec.secrets.get(variable)
    return read_secrets([name])[name] if name else None


class Source(Protocol):
    """Where a model comes from."""

    def resolve(self, wanted: SourceRequest) -> ResolvedModel:
        """Pin the model and read what it is, without downloading its weights.

        Raises:
            Failure: The cause names the fault of the source, or of the connection to it.
        """
        ...

    def stage(
        self,
        model: ResolvedModel,
        on_progress: Callable[[int, int], None],
        *,
        deadline_seconds: float | None = None,
    ) -> ResolvedModel:
        """Have all files on this machine, verified; gives the model with its path here.

        Args:
            model: As `resolve` made it, here or on another machine.
            on_progress: Called with the bytes done and the bytes of all files, at least every half
                second and at the end.
            deadline_seconds: `None` = no deadline.

        Raises:
            Failure: What has been downloaded stays, and the next call resumes it.
        """
        ...


def resolve_all(spec: ModelSpec, settings: Settings, keys: Keys = NO_KEYS) -> ResolvedModel:
    """Find a spec's model and everything that is loaded with it, one after the other.

    Raises:
        Failure: As each source says; `BAD_SPEC` when a stated rank does not hold its adapter.
    """
    assets = assets_of(spec)
    return join_companions(assets, [resolve_one(asset, settings, keys) for asset in assets])


def resolve_one(asset: Asset, settings: Settings, keys: Keys = NO_KEYS) -> ResolvedModel:
    """Find one asset.

    Raises:
        Failure: As its source says; `BAD_SPEC` when a stated rank does not hold the adapter.
    """
    found = source_for(asset, settings, keys, asset.role, anything=asset.anything).resolve(asset)
    if asset.role == AssetRole.ADAPTER:
        require_rank(asset.name, asset.rank, found.config)
    return found


def source_for(
    wanted: SourceRequest,
    settings: Settings,
    keys: Keys = NO_KEYS,
    role: AssetRole = AssetRole.MODEL,
    *,
    anything: bool = False,
) -> Source:
    """Choose the source that a spec, or one of its assets, names.

    Args:
        wanted: The model to find.
        settings: The hub's address, the stores, how many downloads at once.
        keys: What the source asks for; no other token of the hub is looked for.
        role: What it is to the model that is served.
        anything: Whether a directory without a configuration will do.
    """
    layout = layout_of(role)
    if is_local(wanted.source):
        return LocalSource(layout, anything=anything)
    client = client_for(wanted.source, settings, keys)
    # A repository may hold an adapter and a model: each is chosen and stored separately.
    folder = settings.adapters if role == AssetRole.ADAPTER else settings.models
    return HubSource(
        client,
        ModelStore(folder, folder_name(wanted.source)),
        workers=settings.download_workers,
        offline=settings.hub_offline and isinstance(client, HubClient),
        layout=layout,
    )


def client_for(source: str, settings: Settings, keys: Keys) -> HubClient | S3Client:
    """Client for a remote source."""
    if source.startswith(S3):
        return S3Client(S3Http(source.removeprefix(S3), settings.s3_endpoint, keys.s3))
    return HubClient(HubHttp(source.removeprefix(HUB), settings.hub_endpoint, keys.hub))


def mirrors_of(
    model: ResolvedModel, settings: Settings, keys: Keys, seconds: float
) -> list[dict[str, Any]]:
    """Mirrors from which other machines download a model; none for a directory of this machine.

    Args:
        model: The model.
        settings: Addresses of the hub and of the object store.
        keys: What they ask for. What is returned holds the hub's, and none of an object store.
        seconds: How long the addresses must stay valid.
    """
    if model.source.startswith(S3):
        http = S3Http(model.source.removeprefix(S3), settings.s3_endpoint, keys.s3)
        return [s3_mirror(model, http, seconds)]
    if model.source.startswith(HUB):
        return [hub_mirror(model, settings.hub_endpoint, keys.hub)]
    return []


SPARE_SECONDS = 300


def hub_mirror(model: ResolvedModel, endpoint: str, token: str | None) -> dict[str, Any]:
    """A repository on the hub as a mirror for the staging program."""
    repo = model.source.removeprefix(HUB)
    return {
        "name": "hub",
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        "urls": {
            file.name: hf_hub_url(repo, file.name, revision=model.revision, endpoint=endpoint)
            for file in model.files
        },
    }


def s3_mirror(model: ResolvedModel, http: S3Http, seconds: float) -> dict[str, Any]:
    """A bucket as a mirror: addresses that contain no keys, and expire after the download."""
    until = seconds + SPARE_SECONDS
    return {"name": "s3", "urls": {f.name: http.presigned_url(f.name, until) for f in model.files}}
