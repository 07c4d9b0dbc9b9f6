"""What a model is: found out once for a flow run, however many releases it begins."""

from __future__ import annotations

from collections.abc import Callable

from moorage.models.source import ResolvedModel
from moorage.placement.placed import Analyzed
from moorage.releases.release import Release, ReleaseState
from moorage.spec import ModelSpec
from tasks.context import in_thread, ledger
from tasks.derive import derive
from tasks.resolve import resolve


class Analysis:
    """The steps resolve and derive of one flow run.

    Args:
        spec: The model as it is meant to be served.
        sought: The same where exact revisions are meant instead of branches; None = no such.
        require: Fails where what was found is not what is meant.
    """

    def __init__(
        self,
        spec: ModelSpec,
        sought: ModelSpec | None = None,
        require: Callable[[ResolvedModel], None] = lambda _: None,
    ) -> None:
        self._spec, self._sought, self._require = spec, sought or spec, require
        self._found: Analyzed | None = None

    async def found(self) -> Analyzed:
        """The model and its profile."""
        if self._found is None:
            model = await resolve(self._sought)
            self._require(model)
            profile = await derive(self._sought, model)
            self._found = Analyzed(self._spec, model, profile)
        return self._found

    async def of(self, draft: Release) -> tuple[Release, Analyzed]:
        """The model, and the release that was begun for it, pinned to what was found.

        The release is `analyzing` meanwhile, unless the model is known already.
        """
        if self._found is None:
            await in_thread(ledger().releases.move, draft.id, ReleaseState.ANALYZING)
        found = await self.found()
        model = found.model
        await in_thread(ledger().releases.pin, draft.id, model.revision)
        pinned = {"revision": model.revision, "companions": model.pins, "profile": found.profile}
        return draft.model_copy(update=pinned), found
