"""The proposal: which engine, where, and whether the running release has to stop first."""

from __future__ import annotations

from moorage.engines.registry import ENGINES, choose_engine
from moorage.failures import Cause, Failure
from moorage.models.profile import ModelProfile
from moorage.placement.explain import explain
from moorage.placement.placement import Placement, Refusal
from moorage.placement.simple import place
from moorage.placement.snapshot import FleetSnapshot
from moorage.spec import EngineName, ModelSpec
from moorage.values import Origin


def propose(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot, running: str = ""
) -> Placement:
    """Place a model beside what runs; if it only fits instead of its own running release, say so.

    Args:
        spec: What the user wrote.
        profile: The model.
        fleet: The hosts with all claims.
        running: Release of the same model that serves now; empty = none.

    Raises:
        Failure: `NO_FIT` (or `PORT_TAKEN`) with the reason for each host, `BAD_SPEC` when the
            engine cannot serve the model's mode at all.
    """
    engine, origin, why = choose_engine(spec, profile, fleet)
    if profile.mode not in engine.modes:
        modes = ", ".join(sorted(engine.modes))
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.name: {engine.name} does not serve {profile.mode}, only {modes}",
            suggestion="Choose an engine that serves this mode, or set `mode`.",
        )
    beside = place(spec, profile, fleet, engine, origin, why)
    if beside.fits:
        return beside
    if other := _other_engine(spec, profile, fleet, beside):
        return other
    if running:
        instead = place(spec, profile, fleet.without(running), engine, origin, why)
        if instead.fits:
            reason = f"{running} must stop first: {explain(beside.verdicts)}"
            return instead.model_copy(update={"stop_first": reason})
    raise _refusal(beside)


def _other_engine(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot, refused: Placement
) -> Placement | None:
    """Where the engine was left open, another one may run where the first choice cannot."""
    if spec.engine.name != EngineName.AUTO or spec.engine.image:
        return None
    why = f"{refused.engine} fits nowhere: {explain(refused.verdicts)}"
    for engine in ENGINES.values():
        if engine.name != refused.engine and profile.mode in engine.modes:
            placement = place(spec, profile, fleet, engine, Origin.DERIVED, why)
            if placement.fits:
                return placement
    return None


def _refusal(placement: Placement) -> Failure:
    reasons = {verdict.refusal for verdict in placement.verdicts}
    cause = Cause.PORT_TAKEN if reasons == {Refusal.PORT} else Cause.NO_FIT
    return Failure(cause, explain(placement.verdicts))
