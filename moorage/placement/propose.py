"""The proposal: which engine, where, and whether the running release has to stop first."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory import MemoryModel
from moorage.placement.engine import (
    Engines,
    choose_engine,
    other_engines,
    require_configured,
)
from moorage.placement.explanation import explain
from moorage.placement.place import place, place_replicas
from moorage.placement.placement import Placement
from moorage.placement.remedies import remedies, shortage
from moorage.placement.replacement import ReplacementPolicy
from moorage.placement.request import Request, Subject, request_for
from moorage.placement.view import view_of
from moorage.spec import Mode, ModelSpec

OWNED_ARGUMENTS = {
    "--port": "`port`",
    "--host": "`bind` of the host in the fleet file",
    "--served-model-name": "`name`",
}
"""Arguments that decide how the engine is reached; each has a field of its own."""


class NoFit(Failure):
    """No host can take the model; the placement without seats says why."""

    def __init__(self, cause: Cause, placement: Placement) -> None:
        why = [explain(placement.verdicts)]
        why += [f"nearest: {placement.shortage}"] if placement.shortage else []
        why += [f"trouble: {trouble}" for trouble in placement.troubles]
        super().__init__(cause, "\n".join(why), suggestion="\n".join(placement.remedies))
        self.placement = placement


PICTURES = "Name an image with vllm-omni in `engine.image`, or take a custom engine."


def propose(
    subject: Subject, fleet: FleetSnapshot, engines: Engines, running: str = ""
) -> Placement:
    """Place a model beside what runs; if it only fits instead of its own running release, say so.

    Args:
        subject: The model.
        fleet: The hosts with all claims.
        engines: The engines that may serve it.
        running: Release of the same model that serves now; empty = none.

    Raises:
        Failure: `NO_FIT` (or `PORT_TAKEN`) with the reason for each host, `BAD_SPEC` when the
            engine cannot serve the model's mode at all.
    """
    spec, profile = subject.spec, subject.profile
    _refuse_owned_arguments(spec)
    require_configured(spec.engine, fleet)
    engine, origin, why = choose_engine(spec, profile, fleet, engines)
    if not engine.serves(spec, profile.mode):
        modes = ", ".join(sorted(engine.modes))
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.name: {engine.name} does not serve {profile.mode}, only {modes}",
            suggestion=PICTURES
            if profile.mode == Mode.IMAGE_GENERATION
            else "Choose an engine that serves this mode, or set `mode`.",
        )
    request = request_for(subject, engine, fleet)
    first = _with_engine(request, fleet, running, origin, why)
    if first.fits:
        return first
    why = f"{engine.name} fits nowhere: {explain(first.verdicts)}"
    for other in other_engines(spec, profile, engine, engines):
        asked = request_for(subject, other, fleet)
        second = _with_engine(asked, fleet, running, Origin.DERIVED, why)
        if second.fits:
            return second
    raise _refusal(first, request, fleet, subject.memory, running)


def _with_engine(
    request: Request, fleet: FleetSnapshot, running: str, origin: Origin, why: str
) -> Placement:
    """Beside what runs, else instead of the model's own running release, else nowhere.

    Where the user allows it, accelerators are overcommitted before the model is given up.
    """
    policy = ReplacementPolicy(request.spec.replace.strategy, running)
    alongside = place(request.within_limits, fleet, origin, why)
    if alongside.fits and policy.may_overlap:
        return alongside
    if policy.may_stop_first:
        instead = place(request.within_limits, fleet.without(running), origin, why)
        if instead.fits:
            reason = policy.stop_reason(explain(alongside.verdicts))
            return instead.model_copy(update={"stop_first": reason})
    return place(request, fleet, origin, why) if request.may_overcommit else alongside


def _refuse_owned_arguments(spec: ModelSpec) -> None:
    for flag, field in OWNED_ARGUMENTS.items():
        if spec.engine.arguments.has(flag):
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {flag} would move the engine away from where it is looked for",
                suggestion=f"Set {field} instead.",
            )


def _refusal(
    placement: Placement,
    request: Request,
    fleet: FleetSnapshot,
    exact: MemoryModel | None,
    running: str,
) -> NoFit:
    reasons = {verdict.refusal for verdict in placement.verdicts}
    cause = Cause.PORT_TAKEN if reasons == {Reason.PORT} else Cause.NO_FIT
    told = {
        "shortage": shortage(request, fleet, placement.verdicts),
        "remedies": (*_stopping(request, fleet, running), *remedies(request, fleet, exact)),
    }
    return NoFit(cause, placement.model_copy(update=told))


def _stopping(request: Request, fleet: FleetSnapshot, running: str) -> tuple[str, ...]:
    """That it would fit if the running release might stop first, where the spec forbids that."""
    policy = ReplacementPolicy(request.spec.replace.strategy, running)
    if not running or policy.may_stop_first:
        return ()
    instead, _ = place_replicas(
        request.within_limits, list(map(view_of, fleet.without(running).hosts))
    )
    return (policy.remedy,) if instead else ()
