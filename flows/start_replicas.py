"""Launch and verify the replicas of a release, part by part, with at most one second try."""

from __future__ import annotations

from collections.abc import AsyncIterator

from moorage.common.failures import Failure
from moorage.engines.launch import LaunchPlan
from moorage.engines.recovery import Correction, correction_for, with_correction
from moorage.engines.registry import ENGINES
from moorage.engines.start_order import split_off, start_groups
from moorage.models.profile import ModelProfile
from moorage.releases.release import Release
from tasks.launch import correct, launch
from tasks.smoke_test import canary, gate, is_canary, must_pass
from tasks.verify import verify


async def start_replicas(
    draft: Release, plan: LaunchPlan, profile: ModelProfile, before: Release | None = None
) -> AsyncIterator[Release]:
    """Start a release; each part of its plan once the part before is ready and has passed the gate.

    As a canary a share of the replicas starts first, and is watched before the rest starts.

    Where an engine refuses and names a number that would do, its part is started once more with
    it, and so is every later part. What runs already is left as it is.

    Args:
        draft: The release so far.
        plan: Its plan.
        profile: The model.
        before: The release that it replaces; None = none.

    Yields:
        The release, after each part that is ready, after a gate and after a correction: so whoever
        starts it knows what was found and changed, even when it fails then.

    Raises:
        Failure: Of the first try where nothing can be corrected, else of the second; `GATE_FAILED`.
    """
    watched = is_canary(draft, before)
    first, rest = split_off(plan, draft.spec.replace.canary_share if watched else 1)
    parts, later = [*start_groups(first), *start_groups(rest)], len(start_groups(rest))
    while parts:
        part, ready = parts[0], False
        try:
            draft = await _started(draft, part, profile)
        except Failure as failure:
            correction = None if draft.corrections else _correction(draft, plan, failure)
            if correction is None:
                raise
            await correct(part, correction)
            names = {spec.name for part in parts for spec in part.containers}
            plan = with_correction(plan, correction, names)
            parts = [with_correction(part, correction, names) for part in parts]
            draft = draft.model_copy(update={"plan": plan, "corrections": (correction,)})
        else:
            parts, ready = parts[1:], True
        yield draft
        if ready and draft.spec.readiness.prompts:
            draft = await _asked(draft, part, profile, before)
            yield draft
            must_pass(draft.gate)
        if ready and watched and len(parts) == later:
            await canary(draft.spec, profile, plan, draft.workloads)


async def _started(draft: Release, part: LaunchPlan, profile: ModelProfile) -> Release:
    earlier, workloads = draft.workloads, await launch(part)
    ready = await verify(draft.spec, profile, part, workloads, earlier)
    return draft.model_copy(
        update={
            "workloads": (*earlier, *workloads),
            "readiness": (*draft.readiness, *ready),
        }
    )


async def _asked(
    draft: Release, part: LaunchPlan, profile: ModelProfile, before: Release | None
) -> Release:
    names = {spec.name for spec in part.containers}
    workloads = tuple(one for one in draft.workloads if one.name in names)
    found = await gate(draft.spec, profile, part, workloads, before)
    return draft.model_copy(update={"gate": (*draft.gate, *found)})


def _correction(draft: Release, plan: LaunchPlan, failure: Failure) -> Correction | None:
    if plan.on_cluster:
        return None
    seats = draft.placement.seats if draft.placement else ()
    need = next((seat.need for seat in seats if seat.need), None)
    remedy = ENGINES[plan.engine].remedy(failure, need)
    return correction_for(draft.spec, failure.cause, failure.evidence, remedy)
