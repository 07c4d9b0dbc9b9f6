"""What has moved since the release that serves was made."""

from __future__ import annotations

from moorage.adapters.registry.pinning import digest_now
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.drift import Drift, Moved, branch_drift, file_drift, image_drift
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import ModelSpec
from moorage.spec.image_reference import parse_reference
from tasks.context import in_thread, ledger
from tasks.release import serving
from tasks.resolve import resolve_in_passing


async def look(
    spec: ModelSpec, release: Release, fleet: Fleet, whether_it_serves: bool
) -> tuple[Drift, ...]:
    """Everything that a deploy of the model would make otherwise now.

    Args:
        spec: The model as it is meant to be served now.
        release: What serves.
        fleet: It names the registries.
        whether_it_serves: Whether the engine is asked too.

    Raises:
        Failure: When its source cannot be asked.
    """
    model = await resolve_in_passing(spec)
    drifts = (*file_drift(release, spec), *branch_drift(release, model.revision, model.pins))
    drifts += image_drift(release, await in_thread(_digest, release, fleet))
    if whether_it_serves and not (await serving.fn(spec))[1]:
        gone = Drift(kind=Moved.GONE, what=release.id, before="served", after="does not")
        drifts += (gone,)
    return drifts


def candidates(names: list[str]) -> dict[str, ReleaseRow]:
    """What serves, by its model; and, of models that are named, what served until it failed."""
    rows = {row.model: row for row in ledger().releases.in_states(SERVING)}
    for name in names:
        if name not in rows and (row := _died(name)):
            rows[name] = row
    return {name: row for name, row in rows.items() if row.release}


def _died(name: str) -> ReleaseRow | None:
    """The last release that ran, unless it was retired."""
    ran = (row for row in ledger().releases.of_model(name) if row.release and row.release.ran)
    last = next(ran, None)
    return last if last and last.state == ReleaseState.ERROR else None


def _digest(release: Release, fleet: Fleet) -> str:
    image = release.image
    if image is None or not image.digest or parse_reference(image.reference).digest:
        return ""
    return digest_now(image, fleet.registries)
