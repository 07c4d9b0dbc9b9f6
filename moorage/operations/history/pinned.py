"""A spec with its branches and tags replaced by what they stood for."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole, Pin
from moorage.models.source import ResolvedModel
from moorage.releases.release import Release
from moorage.spec import ModelSpec

HUB = "hf://"
"""Only a hub keeps more than one revision; a directory is what it is now."""


def pinned_spec(release: Release) -> ModelSpec:
    """The spec of a release, with the exact revisions that it ran."""
    spec = release.spec
    lora = tuple(
        adapter.model_copy(
            update=_pin(
                adapter.source, _pinned(release.companions, AssetRole.ADAPTER, adapter.name)
            )
        )
        for adapter in spec.lora
    )
    draft = spec.speculative
    if draft and draft.model:
        pin = _pinned(release.companions, AssetRole.DRAFT)
        draft = draft.model_copy(update=_pin(draft.model, pin))
    own = _pin(spec.source, release.revision)
    return spec.model_copy(update={**own, "lora": lora, "speculative": draft})


def require_same(release: Release, found: ResolvedModel) -> None:
    """Check that what was found is what a release ran.

    Raises:
        Failure: `SOURCE_MISSING` when a directory has changed since.
    """
    there = {pin.name: pin.revision for pin in found.pins}
    wanted = {pin.name: pin for pin in release.companions}
    rows = [(release.spec.source, release.revision, found.revision)]
    rows += [(pin.source, pin.revision, there.get(name, "")) for name, pin in wanted.items()]
    for source, before, now in rows:
        if before != now:
            raise Failure(
                Cause.SOURCE_MISSING,
                f"{source}: {release.id} ran revision {before}, which is not there any more;"
                f" {now or 'nothing'} is",
                suggestion="Put the files back as they were, or deploy what is there now.",
            )


def _pin(source: str, revision: str | None) -> dict[str, str]:
    return {"revision": revision} if revision and source.startswith(HUB) else {}


def _pinned(pins: tuple[Pin, ...], role: AssetRole, name: str = "") -> str | None:
    return next((pin.revision for pin in pins if pin.role == role and name in ("", pin.name)), None)
