"""Proposes a placement: the engine, the seats, and whether the running release must stop first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.baseline.place import place_by_rules
from moorage.placement.baseline.terms import by_baseline_rules
from moorage.placement.demand import Subject
from moorage.placement.engine import Engines
from moorage.placement.engine_checks import (
    refuse_other_version,
    refuse_owned_arguments,
    refuse_owned_variables,
    require_configured,
    require_counted_ram,
    require_format,
    require_mode,
)
from moorage.placement.engine_choice import choose_engine, other_engines
from moorage.placement.explanation import Verdict, explain, troubles
from moorage.placement.filters import filter_hosts
from moorage.placement.placement import Placement, Ranking, Seat
from moorage.placement.refusals import verdicts_of, with_replica_note
from moorage.placement.remedies import Trial, remedies, shortage
from moorage.placement.replacement import ReplacementPolicy
from moorage.placement.request import Request, request_for
from moorage.placement.runtime import hardware_of, hardware_of_seat, image_variant
from moorage.placement.scores import WEIGHTS, best, score_all
from moorage.placement.seating import seats_of, with_seats
from moorage.placement.strategies import first_candidates
from moorage.placement.view import HostView, views_of
from moorage.spec import RuntimeName

Judge = Callable[[], tuple[Verdict, ...]]
"""Makes the verdict on every host; lazy, because only the last replica's verdicts are shown."""

Attempt = tuple[tuple[Seat, ...], Judge, Ranking | None]
"""Seats (none = no fit), verdicts, and the ranking by the policy `baseline`, else None."""


class NoFit(Failure):
    """No host can take the model, as the placement says; `others` are more attempts that failed."""

    def __init__(self, cause: Cause, placement: Placement, others: Sequence[str] = ()) -> None:
        why = [*others, explain(placement.verdicts)]
        why += [f"nearest: {placement.shortage}"] if placement.shortage else []
        why += [f"trouble: {trouble}" for trouble in placement.troubles]
        super().__init__(cause, "\n".join(why), suggestion="\n".join(placement.remedies))
        self.placement = placement

    @property
    def content(self) -> dict[str, Any]:
        """The placement, with the verdict on every host."""
        return {"placement": self.placement}


def propose(
    subject: Subject, fleet: FleetSnapshot, engines: Engines, running: str = ""
) -> Placement:
    """Place a model; if it only fits in place of its running release, that release stops first.

    Raises:
        Failure: `NO_FIT` (or `PORT_TAKEN`, or `DISK_FULL`) with the reason for each host,
            `BAD_SPEC` when the engine cannot serve the model's mode at all.
    """
    spec, profile = subject.spec, subject.profile
    refuse_owned_arguments(spec.engine)
    refuse_owned_variables(spec)
    refuse_other_version(spec.engine)
    require_configured(spec.engine, fleet)
    engine, origin, why = choose_engine(spec, profile, fleet, engines)
    require_format(engine, profile)
    require_mode(engine, spec, profile.mode)
    require_counted_ram(engine, spec)
    request = request_for(subject, engine, fleet)
    first = _place_with_engine(request, fleet, running, origin, why)
    if first.fits:
        return first
    why = f"{engine.name} fits nowhere: {explain(first.verdicts)}"
    for other in other_engines(spec, profile, engine, engines):
        other_request = request_for(subject, other, fleet)
        second = _place_with_engine(other_request, fleet, running, Origin.DERIVED, why)
        if second.fits:
            return second
    raise _no_fit(first, request, fleet, running)


def place(request: Request, fleet: FleetSnapshot, origin: Origin, why: str) -> Placement:
    """Choose hosts, accelerators and ports for all replicas, or for none. Nothing is reserved."""
    views = views_of(fleet.hosts)
    seats, judge, ranking = _place_replicas(request, views)
    return Placement(
        engine=request.engine.name,
        engine_origin=origin,
        engine_reason=why,
        policy=request.spec.placement.policy,
        seats=seats,
        verdicts=judge(),
        troubles=troubles(fleet.hosts),
        terms=() if ranking else tuple(WEIGHTS[request.spec.placement.strategy]),
        considered=ranking,
    )


def _place_with_engine(
    request: Request, fleet: FleetSnapshot, running: str, origin: Origin, why: str
) -> Placement:
    """Place next to all running releases, else in place of the model's own one, else nowhere.

    Where the user allows it, keep layers in RAM, then overcommit accelerators, before giving up.
    """
    whole = _place_in_turn(request.within_limits, fleet, running, origin, why)
    if whole.fits or request.within_limits is request:
        return whole
    if request.divisible_layers:
        part = request.with_placement(overcommit=False)
        divided = _place_in_turn(part, fleet, running, origin, why)
        if divided.fits:
            return divided
    return place(request, fleet, origin, why) if request.may_overcommit else whole


def _place_in_turn(
    request: Request, fleet: FleetSnapshot, running: str, origin: Origin, why: str
) -> Placement:
    policy = ReplacementPolicy(request.spec.replace.strategy, running)
    alongside = place(request, fleet, origin, why)
    if alongside.fits and policy.may_overlap:
        return alongside
    if policy.may_stop_first:
        instead = place(request, fleet.without(running), origin, why)
        if instead.fits:
            reason = policy.stop_reason(explain(alongside.verdicts))
            return instead.model_copy(update={"stop_first": reason})
    return alongside


def _place_replicas(request: Request, views: Sequence[HostView]) -> Attempt:
    """Place all replicas or none: verdicts for the last one tried, ranking for the first one.

    All replicas start from one image, so all hardware for which images differ gets its turn if what
    suits the first replica best has no room for the others.
    """
    found = _place_alike(request, views)
    if found[0] or request.spec.replicas == 1:
        return found
    able = filter_hosts(request, views)[0]
    every = (hardware_of(view, kind) for view in able for kind in view.groups or [None])
    there = {image_variant(hardware.chip): hardware for hardware in every}
    if len(there) == 1:
        return found
    for hardware in there.values():
        other = _place_alike(replace(request, shares_image_with=hardware), views)
        if other[0]:
            return other
    return found


def _place_alike(request: Request, views: Sequence[HostView]) -> Attempt:
    """Place all replicas or none, on the type of accelerator that suits the first one best."""
    seats: list[Seat] = []
    taken: tuple[Seat, ...] = ()
    judge: Judge = tuple
    first: Ranking | None = None
    for replica in range(request.spec.replicas):
        if taken:
            views = with_seats(views, taken)
            request = _with_image_of(taken[0], request, views)
        taken, judge, ranking = _place_replica(request, views, replica)
        first = first or ranking
        if not taken:
            return (), judge, first
        seats += taken
    return tuple(seats), judge, first


def _with_image_of(seat: Seat, request: Request, views: Sequence[HostView]) -> Request:
    """The request for the replicas after the first one, which start from its image."""
    if seat.runtime is not RuntimeName.DOCKER or request.shares_image_with:
        return request
    host = next(view.host for view in views if view.host.name == seat.host)
    hardware = hardware_of_seat(host, seat.accelerator_type, seat.accelerators)
    return replace(request, shares_image_with=hardware)


def _place_replica(request: Request, views: Sequence[HostView], replica: int) -> Attempt:
    """Filter the hosts, try the strategies in order, score their candidates and take the best."""
    able, refused = filter_hosts(request, views)
    if by_baseline_rules(request.spec):
        seats, by_host, ranking = place_by_rules(request, able, replica)
        by_host |= refused
        return seats, lambda: tuple(by_host[view.host.name] for view in views), ranking
    scored = first_candidates(request, able)
    score_all(request, scored, able)
    seats = seats_of(request, best(request, scored), replica) if scored else ()

    def judge() -> tuple[Verdict, ...]:
        verdicts = verdicts_of(request, views, able, refused, scored)
        return tuple(map(with_replica_note, views, verdicts)) if replica else verdicts

    return seats, judge, None


def _no_fit(placement: Placement, request: Request, fleet: FleetSnapshot, running: str) -> NoFit:
    reasons = {verdict.refusal for verdict in placement.verdicts}
    views = views_of(fleet.hosts)
    trial = Trial(request, fleet, views, seats_for)
    stop: tuple[str, ...] = ()
    policy = ReplacementPolicy(request.spec.replace.strategy, running)
    if running and not policy.may_stop_first:
        there = views_of(fleet.without(running).hosts)
        stop = (policy.remedy,) if trial.seats(request.within_limits, there) else ()
    explained = {
        "shortage": shortage(request, views, placement.verdicts),
        "remedies": (*stop, *remedies(trial)),
    }
    cause = Cause.NO_FIT
    for reason, own in ((Reason.PORT, Cause.PORT_TAKEN), (Reason.DISK, Cause.DISK_FULL)):
        cause = own if reasons == {reason} else cause
    return NoFit(cause, placement.model_copy(update=explained))


def seats_for(request: Request, views: Sequence[HostView]) -> tuple[Seat, ...]:
    """The seats of all replicas; none = they do not fit."""
    return _place_replicas(request, views)[0]
