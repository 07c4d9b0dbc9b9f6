"""The choice among the quantizations of a model: the largest that fits whole.

It is made step by step, for each quantization has to be read before it is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from moorage.common.failures import Cause
from moorage.common.refusal import Reason
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.inventory.claims import Capacity, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.quantizations import FilesChoice, FileVerdict, Quantization
from moorage.models.weights import LONGEST_HEADERS
from moorage.placement.explanation import Verdict, explain, nearest_miss
from moorage.placement.placement import Placement, Seat
from moorage.placement.propose import NoFit
from moorage.spec import ModelSpec

REMEDY = "Raise `memory.claim` or `placement.ram`, or leave it out: then it is predicted."


class Fit(StrEnum):
    """Where a quantization has a place."""

    ACCELERATORS = "whole on accelerators"
    RAM = "whole in RAM"
    PARTLY = "with layers in RAM"
    NOWHERE = "nowhere"


class Trial(Value):
    """One quantization to be placed: whole, or with whatever the spec allows besides."""

    quantization: Quantization
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trial; `reason` says why it has no place."""

    fit: Fit
    reason: str = ""


def in_whole(spec: ModelSpec) -> ModelSpec:
    """The spec without leave to leave layers in RAM, or to overcommit."""
    changes = {"partial_offload": False, "overcommit": False}
    placement = spec.placement.model_copy(update=changes)
    return spec.model_copy(update={"placement": placement})


def within_limits(proposed: Placement | NoFit) -> Placement | NoFit:
    """What is proposed, as long as it needs no more memory than the spec states.

    Elsewhere a stated claim is taken as it is; among several files it is a limit.
    """
    if isinstance(proposed, NoFit):
        return proposed
    short = {seat.host: verdict for seat in proposed.seats if (verdict := _shortage(seat))}
    if not short:
        return proposed
    refused = {
        "seats": (),
        "verdicts": tuple(short.get(one.host, one) for one in proposed.verdicts),
        "remedies": (REMEDY,),
    }
    return NoFit(Cause.NO_FIT, proposed.model_copy(update=refused))


def outcome_of(proposed: Placement | NoFit) -> Outcome:
    """What became of a trial, from what was proposed for it."""
    if isinstance(proposed, NoFit):
        verdicts = proposed.placement.verdicts
        return Outcome(Fit.NOWHERE, nearest_miss(verdicts) or explain(verdicts))
    if any(seat.layers for seat in proposed.seats):
        return Outcome(Fit.PARTLY)
    whole = all(seat.accelerators for seat in proposed.seats)
    return Outcome(Fit.ACCELERATORS if whole else Fit.RAM)


def _shortage(seat: Seat) -> Verdict | None:
    """The verdict on a seat for which the spec states less than is needed; None = it does not."""
    need, ram = seat.need, seat.cpu_need
    if need and need.stated is not None and need.stated < need.inside + need.outside:
        return Verdict(
            seat.host,
            Reason.ACCELERATOR_MEMORY,
            "memory.claim states no more",
            needed=need.inside + need.outside,
            available=need.stated,
            count=len(seat.accelerators),
        )
    if ram and seat.ram_bytes < ram.ram:
        note = "placement.ram states no more"
        return Verdict(seat.host, Reason.RAM, note, needed=ram.ram, available=seat.ram_bytes)
    return None


MOST_TRIED = 12
"""Quantizations that are read at most, besides the smallest: a header has up to 16 MiB."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to choose from.

    Attributes:
        found: As `quantizations` lists them.
        most: Bytes of weights that the largest host could hold whole; None = there is no limit
            that is sure.
        only_ram: Whether none can have a place on accelerators.
    """

    found: tuple[Quantization, ...]
    most: int | None = None
    only_ram: bool = False

    @property
    def candidates(self) -> tuple[Quantization, ...]:
        """Those that may be chosen: with fewer bits a weight than the others, if they differ."""
        return tuple(one for one in self.found if one.bits == self.found[0].bits)

    @property
    def tried(self) -> tuple[Trial, ...]:
        """The candidates that are tried whole, as long as none fits."""
        return tuple(map(_whole, filter(self.may_fit, self.candidates)))[:MOST_TRIED]

    def may_fit(self, one: Quantization) -> bool:
        """Whether the size of its files leaves it open that it fits whole."""
        return self.most is None or one.bytes - LONGEST_HEADERS <= self.most


Outcomes = Mapping[Trial, Outcome]


class NoQuantizationFits(NoFit):
    """No host can take any quantization; the placement is that of the smallest.

    Args:
        last: Why the smallest does not fit.
    """

    def __init__(self, last: NoFit, choice: FilesChoice) -> None:
        lines = [f"{one.name} ({human_bytes(one.bytes)}): {one.refusal}" for one in choice.verdicts]
        super().__init__(last.cause, last.placement, lines)
        self.choice = choice

    @property
    def content(self) -> dict[str, Any]:
        """The placement, and the verdict on every quantization."""
        return {**super().content, "files": self.choice}


def offer_of(found: Sequence[Quantization], spec: ModelSpec, fleet: FleetSnapshot) -> Offer:
    """What the quantizations of a source are to a spec and a fleet."""
    spans = spec.placement.across_hosts or spec.placement.hosts != "auto"
    totals = [_most_whole(host.capacities) for host in fleet.hosts]
    accelerators = any(host.accelerators for host in fleet.hosts)
    return Offer(
        found=tuple(found),
        most=None if spans else max(totals, default=0),
        only_ram=not accelerators or spec.placement.accelerators == 0,
    )


def choose(offer: Offer, propose: Callable[[Trial], Placement | NoFit]) -> FilesChoice:
    """Try one quantization after the other, until the best is known.

    Args:
        propose: What placing one comes to. It is only asked for what has to be known.

    Raises:
        NoQuantizationFits: With the reason for each.
    """
    outcomes: dict[Trial, Outcome] = {}
    while trial := _next_trial(offer, outcomes):
        proposed = within_limits(propose(trial))
        outcomes[trial] = outcome_of(proposed)
    choice = _decide(offer, outcomes)
    if isinstance(proposed, NoFit) and not choice.pattern:
        raise NoQuantizationFits(proposed, choice)
    return choice


def _most_whole(capacities: Iterable[Capacity]) -> int:
    """Bytes of a host's accelerators, or of its RAM where that is more."""
    sizes = Counter[Resource]()
    for one in capacities:
        sizes[one.resource] += one.amount
    return max(sizes[Resource.ACCELERATOR], sizes[Resource.RAM])


def _next_trial(offer: Offer, outcomes: Outcomes) -> Trial | None:
    """The trial whose outcome has to be known next; None = enough is known."""
    fits = {outcome.fit for outcome in outcomes.values()}
    if Fit.ACCELERATORS in fits or (offer.only_ram and Fit.RAM in fits):
        return None
    if left := next((one for one in offer.tried if one not in outcomes), None):
        return left
    last = _last(offer)
    return None if Fit.RAM in fits or last in outcomes else last


def _decide(offer: Offer, outcomes: Outcomes) -> FilesChoice:
    """The largest that fits whole on accelerators, else whole in RAM, else the smallest in parts.

    Without a pattern where none fits.
    """
    chosen = _chosen(offer, outcomes)
    verdicts = tuple(
        FileVerdict(
            name=one.name,
            bytes=one.bytes,
            refusal="" if chosen and one == chosen.quantization else _refusal(one, offer, outcomes),
        )
        for one in offer.found
    )
    if chosen is None:
        return FilesChoice(pattern="", reason="none fits", verdicts=verdicts)
    rank = "the largest that fits" if chosen.whole else "the smallest, which fits"
    reason = f"{rank} {outcomes[chosen].fit}"
    return FilesChoice(pattern=chosen.quantization.pattern, reason=reason, verdicts=verdicts)


def _chosen(offer: Offer, outcomes: Outcomes) -> Trial | None:
    for fit in (Fit.ACCELERATORS, Fit.RAM):
        for trial in offer.tried:
            if trial in outcomes and outcomes[trial].fit == fit:
                return trial
    last = _last(offer)
    return last if last in outcomes and outcomes[last].fit != Fit.NOWHERE else None


def _refusal(one: Quantization, offer: Offer, outcomes: Outcomes) -> str:
    if one not in offer.candidates:
        return f"not quantized ({one.bits} bits a weight): taken by its name only"
    for trial in (_whole(one), _last(offer)):
        if (outcome := outcomes.get(trial)) and trial.quantization == one:
            return outcome.reason or f"it fits {outcome.fit} only"
    if not offer.may_fit(one):
        return f"no host has more than {human_bytes(offer.most or 0)} for its weights"
    if _whole(one) in offer.tried:
        return "smaller than the chosen one"
    return f"not tried: only {MOST_TRIED} are, and the smallest"


def _last(offer: Offer) -> Trial:
    """The last resort: the smallest, with all that the spec allows."""
    return Trial(quantization=offer.candidates[-1], whole=False)


def _whole(one: Quantization) -> Trial:
    return Trial(quantization=one)
