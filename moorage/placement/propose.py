"""The proposal: which engine, where, and whether the running release has to stop first."""

from __future__ import annotations

from moorage.arguments import has_argument, user_tokens
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES, choose_engine
from moorage.failures import Cause, Failure
from moorage.models.profile import ModelProfile
from moorage.placement.explain import explain
from moorage.placement.placement import Placement, Refusal
from moorage.placement.simple import place
from moorage.placement.snapshot import FleetSnapshot
from moorage.spec import EngineName, ModelSpec
from moorage.values import Origin

OWNED_ARGUMENTS = {
    "--port": "`port`",
    "--host": "`bind` of the host in the fleet file",
    "--served-model-name": "`name`",
}
"""Arguments that decide how the engine is reached; each has a field of its own."""


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
    _refuse_owned_arguments(spec)
    engine, origin, why = choose_engine(spec, profile, fleet)
    if profile.mode not in engine.modes:
        modes = ", ".join(sorted(engine.modes))
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.name: {engine.name} does not serve {profile.mode}, only {modes}",
            suggestion="Choose an engine that serves this mode, or set `mode`.",
        )
    first = _with_engine(spec, profile, fleet, running, (engine, origin, why))
    if first.fits:
        return first
    why = f"{engine.name} fits nowhere: {explain(first.verdicts)}"
    for other in _others(spec, profile, engine):
        second = _with_engine(spec, profile, fleet, running, (other, Origin.DERIVED, why))
        if second.fits:
            return second
    raise _refusal(first)


def _with_engine(
    spec: ModelSpec,
    profile: ModelProfile,
    fleet: FleetSnapshot,
    running: str,
    choice: tuple[Engine, Origin, str],
) -> Placement:
    """Beside what runs, else instead of the model's own running release, else nowhere."""
    beside = place(spec, profile, fleet, *choice)
    if beside.fits or not running:
        return beside
    instead = place(spec, profile, fleet.without(running), *choice)
    if not instead.fits:
        return beside
    reason = f"{running} must stop first: {explain(beside.verdicts)}"
    return instead.model_copy(update={"stop_first": reason})


def _others(spec: ModelSpec, profile: ModelProfile, first: Engine) -> list[Engine]:
    """Where the engine was left open, another one may run where the first choice cannot."""
    if spec.engine.name != EngineName.AUTO or spec.engine.image:
        return []
    return [e for e in ENGINES.values() if e is not first and profile.mode in e.modes]


def _refuse_owned_arguments(spec: ModelSpec) -> None:
    tokens = user_tokens(spec.engine.args)
    for flag, field in OWNED_ARGUMENTS.items():
        if has_argument(tokens, flag):
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {flag} would move the engine away from where it is looked for",
                suggestion=f"Set {field} instead.",
            )


def _refusal(placement: Placement) -> Failure:
    reasons = {verdict.refusal for verdict in placement.verdicts}
    cause = Cause.PORT_TAKEN if reasons == {Refusal.PORT} else Cause.NO_FIT
    return Failure(cause, explain(placement.verdicts))
