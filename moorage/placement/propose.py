"""The proposal: which engine, where, and whether the running release has to stop first."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.demand import MemoryModel
from moorage.placement.baseline.place import place_by_rules, rank_by_rules
from moorage.placement.baseline.terms import by_baseline_rules
from moorage.placement.better_hosts import Trial
from moorage.placement.candidates import Candidate
from moorage.placement.engine import (
    Engines,
    choose_engine,
    other_engines,
    refuse_owned_arguments,
    require_configured,
    require_mode,
)
from moorage.placement.explanation import Verdict, explain, troubles
from moorage.placement.filters import filter_hosts
from moorage.placement.placement import Placement, Seat
from moorage.placement.refusals import verdicts_of, with_replica_note
from moorage.placement.remedies import remedies, shortage
from moorage.placement.replacement import ReplacementPolicy
from moorage.placement.request import Request, Subject
from moorage.placement.scores import WEIGHTS, best, score_all
from moorage.placement.seating import seats_of, with_seats
from moorage.placement.strategies import strategies
from moorage.placement.view import HostView, view_of


class NoFit(Failure):
    """No host can take the model; the placement without seats says why."""

    def __init__(self, cause: Cause, placement: Placement) -> None:
        why = [explain(placement.verdicts)]
        why += [f"nearest: {placement.shortage}"] if placement.shortage else []
        why += [f"trouble: {trouble}" for trouble in placement.troubles]
        super().__init__(cause, "\n".join(why), suggestion="\n".join(placement.remedies))
        self.placement = placement


def propose(
    subject: Subject, fleet: FleetSnapshot, engines: Engines, running: str = ""
) -> Placement:
    """Place a model; where it only fits instead of its own running release, that stops first.

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
    refuse_owned_arguments(spec.engine)
    require_configured(spec.engine, fleet)
    engine, origin, why = choose_engine(spec, profile, fleet, engines)
    require_mode(engine, spec, profile.mode)
    request = subject.request(engine, fleet)
    first = _place_with_engine(request, fleet, running, origin, why)
    if first.fits:
        return first
    why = f"{engine.name} fits nowhere: {explain(first.verdicts)}"
    for other in other_engines(spec, profile, engine, engines):
        other_request = subject.request(other, fleet)
        second = _place_with_engine(other_request, fleet, running, Origin.DERIVED, why)
        if second.fits:
            return second
    raise _no_fit(first, request, fleet, subject.memory, running)


def place(request: Request, fleet: FleetSnapshot, origin: Origin, why: str) -> Placement:
    """Choose hosts, accelerators and ports for every replica. Nothing is reserved yet.

    Args:
        request: What is to be placed.
        fleet: The hosts with all claims.
        origin: Who chose the engine.
        why: The reason of that choice.

    Returns:
        A placement with the seats of all replicas, or with none and a refusal for each host.
    """
    views, by_rules = [view_of(host) for host in fleet.hosts], by_baseline_rules(request.spec)
    seats, verdicts = _place_replicas(request, views)
    return Placement(
        engine=request.engine.name,
        engine_origin=origin,
        engine_reason=why,
        policy=request.spec.placement.policy,
        seats=seats,
        verdicts=verdicts,
        troubles=troubles(fleet.hosts),
        terms=() if by_rules else tuple(WEIGHTS[request.spec.placement.strategy]),
        considered=rank_by_rules(request, filter_hosts(request, views)[0]) if by_rules else None,
    )


def _place_with_engine(
    request: Request, fleet: FleetSnapshot, running: str, origin: Origin, why: str
) -> Placement:
    """Alongside what runs, else instead of the model's own running release, else nowhere.

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


def _place_replicas(
    request: Request, views: Sequence[HostView]
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for all replicas, or none; the verdicts for the last replica that was tried."""
    seats: list[Seat] = []
    verdicts: tuple[Verdict, ...] = ()
    for replica in range(request.spec.replicas):
        taken, verdicts = _place_replica(request, views, replica)
        if not taken:
            return (), verdicts
        seats += taken
        views = with_seats(views, taken)
    return tuple(seats), verdicts


def _place_replica(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Filter the hosts, try the strategies in order, score their candidates and take the best.

    Returns:
        The seats, none when nothing fits, and a verdict for each host.
    """
    able, refused = filter_hosts(request, views)
    if by_baseline_rules(request.spec):
        seats, by_host = place_by_rules(request, able, replica)
        by_host |= refused
        return seats, tuple(by_host[view.host.name] for view in views)
    scored = score_all(request, _first_candidates(request, able), able)
    seats = seats_of(request, best(request, scored), replica) if scored else ()
    verdicts = verdicts_of(request, views, able, refused, scored)
    return seats, tuple(map(with_replica_note, views, verdicts)) if replica else verdicts


def _first_candidates(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    for strategy in strategies(request):
        if candidates := strategy(request, views):
            # A host on which the whole context fits is never passed over for one where it does not.
            return [candidate for candidate in candidates if candidate.is_full] or candidates
    return []


def _no_fit(
    placement: Placement,
    request: Request,
    fleet: FleetSnapshot,
    exact: MemoryModel | None,
    running: str,
) -> NoFit:
    reasons = {verdict.refusal for verdict in placement.verdicts}
    trial = Trial(request, exact, fleet, [view_of(host) for host in fleet.hosts], seats_for)
    explained = {
        "shortage": shortage(request, fleet, placement.verdicts),
        "remedies": (*_stop_remedy(trial, running), *remedies(trial)),
    }
    cause = Cause.PORT_TAKEN if reasons == {Reason.PORT} else Cause.NO_FIT
    return NoFit(cause, placement.model_copy(update=explained))


def seats_for(request: Request, views: Sequence[HostView]) -> tuple[Seat, ...]:
    """The seats of all replicas; none = they do not fit."""
    return _place_replicas(request, views)[0]


def _stop_remedy(trial: Trial, running: str) -> tuple[str, ...]:
    """That it would fit if the running release might stop first, where the spec forbids that."""
    policy = ReplacementPolicy(trial.request.spec.replace.strategy, running)
    if not running or policy.may_stop_first:
        return ()
    views = [view_of(host) for host in trial.fleet.without(running).hosts]
    return (policy.remedy,) if trial.seats(trial.request.within_limits, views) else ()
