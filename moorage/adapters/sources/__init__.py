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
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec

__all__ = ["Source", "source_for"]


class Source(Protocol):
    """Where a model comes from."""

    def resolve(self, spec: ModelSpec) -> ResolvedModel:
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


def source_for(spec: ModelSpec, settings: Settings, token: str | None = None) -> Source:
    """Choose the source that a spec names.

    Args:
        spec: The model.
        settings: The hub's address, the model store, how many downloads at once.
        token: Access token of the hub, if there is one; no other is looked for.
    """
    if not spec.source.startswith("hf://"):
        return LocalSource()
    repo = spec.source.removeprefix("hf://")
    return HubSource(
        HubClient(Wire(repo, settings.hub_endpoint, token)),
        ModelStore(settings.models, repo),
        workers=settings.download_workers,
        offline=settings.hub_offline,
    )
