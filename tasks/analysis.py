"""What a model is: found out once for a flow run, however many releases it begins."""

from __future__ import annotations

from collections.abc import Callable

from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.release import Release, ReleaseState
from moorage.spec import ModelSpec
from tasks.context import in_thread, ledger
from tasks.derive import derive
from tasks.resolve import resolve


class Analysis:
    """The steps resolve and derive of one flow run.

    Args:
        spec: The model as it is meant to be served.
        require: Fails where what was found is not what is meant.
    """

    def __init__(
        self, spec: ModelSpec, require: Callable[[ResolvedModel], None] = lambda _: None
    ) -> None:
        self._spec, self._require = spec, require
        self._found: tuple[ResolvedModel, ModelProfile] | None = None

    async def found(self) -> tuple[ResolvedModel, ModelProfile]:
        """The model and its profile."""
        if self._found is None:
            model = await resolve(self._spec)
            self._require(model)
            self._found = model, await derive(self._spec, model)
        return self._found

    async def of(self, draft: Release) -> tuple[Release, ResolvedModel, ModelProfile]:
        """The model, its profile, and the release that was begun for it, pinned to both.

        The release is `analyzing` meanwhile, unless the model is known already.
        """
        if self._found is None:
            await in_thread(ledger().releases.move, draft.id, ReleaseState.ANALYZING)
        model, profile = await self.found()
        await in_thread(ledger().releases.pin, draft.id, model.revision)
        pinned = {"revision": model.revision, "companions": model.pins, "profile": profile}
        return draft.model_copy(update=pinned), model, profile
