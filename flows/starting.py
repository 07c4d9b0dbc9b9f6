"""Starting what a release plans: part by part, each verified, with at most one second try."""

from __future__ import annotations

from collections.abc import AsyncIterator

from moorage.engines.recovery import Correction, amended, corrected_by
from moorage.engines.registry import ENGINES
from moorage.engines.turns import in_turns
from moorage.failures import Failure
from moorage.launch import LaunchPlan
from moorage.models.profile import ModelProfile
from moorage.release import Release
from tasks.correct import correct
from tasks.launch import launch
from tasks.verify import verify


async def starting(
    draft: Release, plan: LaunchPlan, profile: ModelProfile
) -> AsyncIterator[Release]:
    """Start a release; each part of its plan once the part before is ready.

    Where an engine refuses and names a number that would do, its part is started once more with
    it, and so is every later part. What runs already is left as it is.

    Args:
        draft: The release so far.
        plan: Its plan.
        profile: The model.

    Yields:
        The release, after each part that is ready and after a correction: so whoever starts it
        knows what was changed, even when the second try fails.

    Raises:
        Failure: Of the first try where nothing can be corrected, else of the second.
    """
    parts = list(in_turns(plan))
    while parts:
        try:
            draft = await _started(draft, parts[0], profile)
        except Failure as failure:
            correction = None if draft.corrections else _correction(draft, plan, failure)
            if correction is None:
                raise
            await correct(parts[0], correction)
            names = {spec.name for part in parts for spec in part.containers}
            plan = amended(plan, correction, names)
            parts = [amended(part, correction, names) for part in parts]
            draft = draft.model_copy(update={"plan": plan, "corrections": (correction,)})
        else:
            parts.pop(0)
        yield draft


async def _started(draft: Release, part: LaunchPlan, profile: ModelProfile) -> Release:
    earlier, workloads = draft.workloads, await launch(part)
    ready = await verify(draft.spec, profile, part, workloads, earlier)
    return draft.model_copy(
        update={
            "workloads": (*earlier, *workloads),
            "readiness": (*draft.readiness, *ready),
        }
    )


def _correction(draft: Release, plan: LaunchPlan, failure: Failure) -> Correction | None:
    if plan.on_cluster:
        return None
    seats = draft.placement.seats if draft.placement else ()
    need = next((seat.need for seat in seats if seat.need), None)
    remedy = ENGINES[plan.engine].remedy(failure, need)
    return corrected_by(draft.spec, failure.cause, failure.evidence, remedy)
