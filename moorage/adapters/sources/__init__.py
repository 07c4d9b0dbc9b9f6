"""Where models come from: one seam, a hub or a directory behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moorage.adapters.settings import Settings
from moorage.adapters.sources.client import HubClient
from moorage.adapters.sources.hub import HubSource
from moorage.adapters.sources.local import LocalSource
from moorage.adapters.sources.store import ModelStore
from moorage.adapters.sources.wire import Wire
from moorage.models.adapter_config import require_rank
from moorage.models.assets import Asked, Asset, AssetRole, assets_of
from moorage.models.companions import brought_together
from moorage.models.layout import layout_of
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec

__all__ = ["Source", "resolve_all", "resolve_one", "source_for"]


class Source(Protocol):
    """Where a model comes from."""

    def resolve(self, asked: Asked) -> ResolvedModel:
        """Pin the model and read what it is, without downloading its weights.

        Raises:
            Failure: With a cause that says what is wrong with the source or on the way to it.
        """
        ...

    def stage(
        self,
        model: ResolvedModel,
        on_progress: Callable[[int, int], None],
        *,
        deadline_seconds: float | None = None,
    ) -> ResolvedModel:
        """Make sure that all files are on this machine, verified.

        Args:
            model: As `resolve` made it, here or on another machine.
            on_progress: Called with the bytes done and the bytes of all files, at least every half
                second and at the end.
            deadline_seconds: How long it may take; `None` = as long as it takes.

        Returns:
            The model, staged, with its path on this machine.

        Raises:
            Failure: With a cause; what has been downloaded stays and is used by the next call.
        """
        ...


def resolve_all(spec: ModelSpec, settings: Settings, token: str | None = None) -> ResolvedModel:
    """Find a spec's model and everything that is loaded beside it, one after the other.

    Raises:
        Failure: As each source says; `BAD_SPEC` when a stated rank does not hold its adapter.
    """
    assets = assets_of(spec)
    return brought_together(assets, [resolve_one(asset, settings, token) for asset in assets])


def resolve_one(asset: Asset, settings: Settings, token: str | None = None) -> ResolvedModel:
    """Find one asset.

    Raises:
        Failure: As its source says; `BAD_SPEC` when a stated rank does not hold the adapter.
    """
    found = source_for(asset, settings, token, asset.role, anything=asset.anything).resolve(asset)
    if asset.role == AssetRole.ADAPTER:
        require_rank(asset.name, asset.rank, found.config)
    return found


def source_for(
    asked: Asked,
    settings: Settings,
    token: str | None = None,
    role: AssetRole = AssetRole.MODEL,
    *,
    anything: bool = False,
) -> Source:
    """Choose the source that a spec, or one of its assets, names.

    Args:
        asked: What is to be found.
        settings: The hub's address, the stores, how many downloads at once.
        token: Access token of the hub, if there is one; no other is looked for.
        role: What it is to the model that is served.
        anything: Whether a directory without a configuration will do.
    """
    layout = layout_of(role)
    if not asked.source.startswith("hf://"):
        return LocalSource(layout, anything=anything)
    repo = asked.source.removeprefix("hf://")
    # A repository may hold an adapter beside a model: each is chosen and kept for itself.
    folder = settings.adapters if role == AssetRole.ADAPTER else settings.models
    return HubSource(
        HubClient(Wire(repo, settings.hub_endpoint, token)),
        ModelStore(folder, repo),
        workers=settings.download_workers,
        offline=settings.hub_offline,
        layout=layout,
    )
