"""Sources of models: a hub, a bucket or a directory.

Clients of remote sources are imported at their first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from moorage.adapters.files.safe_files import read_whole
from moorage.adapters.secrets import read_secrets, remember
from moorage.adapters.sources.local import LocalSource
from moorage.adapters.sources.store import ModelStore
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from moorage.common.units import MIB
from moorage.inventory.model_store import HUB, S3, folder_name, is_local, repository
from moorage.models.assets import Asset, assets_of, require_rank
from moorage.models.files import ADAPTER, MODEL, Layout
from moorage.models.pin import AssetRole
from moorage.models.source import ResolvedModel, join_companions
from moorage.spec import ModelSpec

if TYPE_CHECKING:
    from moorage.adapters.sources.remote_source import RemoteClient, RemoteSource

CERTIFICATES = "SSL_CERT_FILE"
LARGEST_AUTHORITIES = MIB
"""Most bytes of the file; that of all public authorities has a quarter of it."""

HUB_TOKEN = "HF_TOKEN"
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by kind of source; without a key, requests are anonymous.

    Attributes:
        hub: Access token of the hub.
        s3: Key id, secret key and session token of an object store; empty = the keys that AWS's own
            tools find (environment, `~/.aws`, the machine's role), else unsigned requests.
    """

    hub: str | None = field(default=None, repr=False)
    s3: tuple[str, ...] = field(default=(), repr=False)


NO_KEYS = Keys()


def read_keys(spec: ModelSpec) -> Keys:
    """The keys that a spec names as secrets; the hub's may also come from the environment."""
    token = _secret(spec, HUB_TOKEN) or os.environ.get(HUB_TOKEN)
    if token:
        remember({HUB_TOKEN: token})
    named = [_secret(spec, name) or "" for name in S3_KEYS]
    return Keys(hub=token, s3=tuple(named) if named[0] else ())


def _secret(spec: ModelSpec, variable: str) -> str | None:
    name = spec.secrets.get(variable)
    return read_secrets([name])[name] if name else None


def resolve_all(spec: ModelSpec, settings: Settings, keys: Keys = NO_KEYS) -> ResolvedModel:
    """Resolve a spec's model and its companions, one after the other, as `resolve_one`."""
    assets = assets_of(spec)
    return join_companions(assets, [resolve_one(asset, settings, keys) for asset in assets])


def resolve_one(asset: Asset, settings: Settings, keys: Keys = NO_KEYS) -> ResolvedModel:
    """Resolve one asset; raises as `resolve` of its source, and `BAD_SPEC` as `require_rank`."""
    found = source_for(asset, settings, keys).resolve(asset)
    if asset.role == AssetRole.ADAPTER:
        require_rank(asset.name, asset.rank, found.config)
    return found


def source_for(
    asset: Asset, settings: Settings, keys: Keys = NO_KEYS
) -> RemoteSource | LocalSource:
    """The source of an asset. Only the token in `keys` is sent to the hub."""
    layout = ADAPTER if asset.role == AssetRole.ADAPTER else MODEL
    if is_local(asset.source):
        return LocalSource(layout, anything=asset.anything)
    # A repository may contain an adapter and a model: each is chosen and stored separately.
    folder = settings.adapters if asset.role == AssetRole.ADAPTER else settings.models
    return _remote_source(asset, settings, keys, folder, layout)


@contextmanager
def unstored_source(
    asset: Asset, settings: Settings, keys: Keys
) -> Iterator[RemoteSource | LocalSource]:
    """The source of a model, for reading several quantizations of it: the block stores nothing."""
    if is_local(asset.source):
        yield LocalSource()
        return
    with TemporaryDirectory(prefix="moorage-") as folder:
        yield _remote_source(asset, settings, keys, Path(folder), MODEL)


def _remote_source(
    asset: Asset, settings: Settings, keys: Keys, folder: Path, layout: Layout
) -> RemoteSource:
    from moorage.adapters.sources.remote_source import RemoteSource  # noqa: PLC0415  (see above)

    return RemoteSource(
        client_for(asset.source, settings, keys),
        ModelStore(folder, folder_name(asset.selection)),
        workers=settings.download_workers,
        offline=_is_offline(asset.source, settings),
        layout=layout,
    )


def _is_offline(source: str, settings: Settings) -> bool:
    """Whether no request may be sent to a source; a bucket is none of the hub."""
    return settings.hub_offline and not repository(source).startswith(S3)


def client_for(source: str, settings: Settings, keys: Keys) -> RemoteClient:
    """Client for a remote source."""
    source = repository(source)
    if source.startswith(S3):
        from moorage.adapters.sources.s3_client import S3Client  # noqa: PLC0415  (see above)

        return S3Client(source.removeprefix(S3), settings.s3_endpoint, keys.s3)
    from moorage.adapters.sources.hub_client import HubClient  # noqa: PLC0415  (see above)

    return HubClient(source.removeprefix(HUB), settings.hub_endpoint, keys.hub)


def mirrors_of(
    model: ResolvedModel, settings: Settings, keys: Keys, seconds: float
) -> list[dict[str, Any]]:
    """Mirrors from which other machines download a model; none = this machine sends its own copy.

    Their addresses stay valid for `seconds`. Mirrors contain the hub's token, and never a key of an
    object store. They also bring the authorities that this machine trusts.
    """
    if is_local(model.source) or _is_offline(model.source, settings):
        return []
    mirror = client_for(model.source, settings, keys).mirror(model, seconds)
    return [{**mirror, "authorities": _authorities()}]


def _authorities() -> str:
    """The certificates in the file that SSL_CERT_FILE names; empty = it names none to read."""
    if named := os.environ.get(CERTIFICATES):
        with suppress(OSError, Failure):
            # A comment between the certificates may be in any encoding.
            return read_whole(Path(named), LARGEST_AUTHORITIES).decode("ascii", "ignore")
    return ""
