"""The choice among the quantizations of a model: the largest that fits whole.

It proceeds step by step, because the header of each quantization must be read before its trial.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from moorage.common.failures import Cause, Failure
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

MOST_TRIED = 12
"""Most quantizations to read, besides the smallest: a header may take `LONGEST_HEADERS` bytes."""

REMEDY = "Raise `memory.claim` or `placement.ram`, or leave it out: then it is predicted."


class Fit(StrEnum):
    """Where a quantization fits."""

    ACCELERATORS = "whole on accelerators"
    RAM = "whole in RAM"
    PARTLY = "with layers in RAM"
    NOWHERE = "nowhere"


class FileTrial(Value):
    """One quantization to place: whole, or also with offload and overcommitment if allowed."""

    quantization: Quantization
    whole: bool = True


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The outcome of a trial; `reason` says why it fits nowhere."""

    fit: Fit
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """The quantizations to choose from, and what the fleet could hold.

    Attributes:
        found: As `quantizations` lists them.
        most: Bytes of weights that the largest host could hold whole; None = no certain limit.
        only_ram: Whether accelerators are out of the question.
    """

    found: tuple[Quantization, ...]
    most: int | None = None
    only_ram: bool = False

    @property
    def candidates(self) -> tuple[Quantization, ...]:
        """Those that may be chosen: the quantized ones; if there are none, those of fewest bits."""
        return tuple(one for one in self.found if one.bits == self.found[0].bits)

    @property
    def tried(self) -> tuple[FileTrial, ...]:
        """Trials of whole candidates, in order, until one fits."""
        possible = tuple(filter(self.may_fit, self.candidates))[:MOST_TRIED]
        return tuple(FileTrial(quantization=one) for one in possible)

    def may_fit(self, one: Quantization) -> bool:
        """Whether its file size does not rule out that it fits whole."""
        return self.most is None or one.bytes - LONGEST_HEADERS <= self.most


UNREADABLE = (Cause.SOURCE_CORRUPT, Cause.SOURCE_INCOMPLETE)
"""Causes that concern one file, so another one is tried."""

Outcomes = Mapping[FileTrial, FileOutcome]


class NoQuantizationFits(NoFit):
    """No host can take any quantization; `last` and its placement are those of the smallest."""

    def __init__(self, last: NoFit, choice: FilesChoice) -> None:
        lines = [f"{one.name} ({human_bytes(one.bytes)}): {one.refusal}" for one in choice.verdicts]
        super().__init__(last.cause, last.placement, lines)
        self.choice = choice

    @property
    def content(self) -> dict[str, Any]:
        """The placement of the smallest, and the verdict on every quantization."""
        return {**super().content, "files": self.choice}


def offer_of(found: Sequence[Quantization], spec: ModelSpec, fleet: FleetSnapshot) -> Offer:
    """The offer that the quantizations of a source make to a spec on a fleet."""
    spans = spec.placement.across_hosts or spec.placement.hosts != "auto"
    totals = [_most_whole(host.capacities) for host in fleet.hosts]
    accelerators = any(host.accelerators for host in fleet.hosts)
    return Offer(
        found=tuple(found),
        most=None if spans else max(totals, default=0),
        only_ram=not accelerators or spec.placement.accelerators == 0,
    )


def in_whole(spec: ModelSpec) -> ModelSpec:
    """The spec with partial offload and overcommitment forbidden."""
    changes = {"partial_offload": False, "overcommit": False}
    placement = spec.placement.model_copy(update=changes)
    return spec.model_copy(update={"placement": placement})


def choose(offer: Offer, propose: Callable[[FileTrial], Placement | NoFit]) -> FilesChoice:
    """Try one quantization after the other, which `propose` places, until the best is known.

    Raises:
        NoQuantizationFits: With the reason for each.
        Failure: When no header can be read.
    """
    outcomes: dict[FileTrial, FileOutcome] = {}
    proposed: Placement | Failure | None = None
    while trial := _next_trial(offer, outcomes):
        try:
            proposed = _within_limits(propose(trial))
            outcomes[trial] = _outcome_of(proposed)
        except Failure as failure:
            if failure.cause not in UNREADABLE:
                raise
            proposed = proposed or failure
            outcomes[trial] = FileOutcome(Fit.NOWHERE, failure.detail)
    choice = _decide(offer, outcomes)
    if isinstance(proposed, Failure) and not choice.pattern:
        raise NoQuantizationFits(proposed, choice) if isinstance(proposed, NoFit) else proposed
    return choice


def _most_whole(capacities: Iterable[Capacity]) -> int:
    """Bytes of a host's accelerator memory or of its RAM, whichever is larger."""
    sizes = Counter[Resource]()
    for one in capacities:
        sizes[one.resource] += one.amount
    return max(sizes[Resource.ACCELERATOR], sizes[Resource.RAM])


def _next_trial(offer: Offer, outcomes: Outcomes) -> FileTrial | None:
    """The next trial to run; None = the choice is certain."""
    fits = {outcome.fit for outcome in outcomes.values()}
    if Fit.ACCELERATORS in fits or (offer.only_ram and Fit.RAM in fits):
        return None
    if left := next((one for one in offer.tried if one not in outcomes), None):
        return left
    last = _last(offer)
    return None if Fit.RAM in fits or last in outcomes else last


def _within_limits(proposed: Placement | NoFit) -> Placement | NoFit:
    """The proposal, or `NoFit` if it needs more memory than the spec states.

    Elsewhere a stated claim is trusted; for a choice among several files it is a limit.
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


def _shortage(seat: Seat) -> Verdict | None:
    """The verdict on a seat that needs more than the spec states; None = it does not."""
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


def _outcome_of(proposed: Placement | NoFit) -> FileOutcome:
    """The outcome of a trial, from its proposed placement."""
    if isinstance(proposed, NoFit):
        verdicts = proposed.placement.verdicts
        return FileOutcome(Fit.NOWHERE, nearest_miss(verdicts) or explain(verdicts))
    if any(seat.layers for seat in proposed.seats):
        return FileOutcome(Fit.PARTLY)
    whole = all(seat.accelerators for seat in proposed.seats)
    return FileOutcome(Fit.ACCELERATORS if whole else Fit.RAM)


def _decide(offer: Offer, outcomes: Outcomes) -> FilesChoice:
    """Choose the largest that fits whole on accelerators, else whole in RAM, else the smallest.

    The smallest may be split between accelerators and RAM. If none fits, the pattern is empty.
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


def _chosen(offer: Offer, outcomes: Outcomes) -> FileTrial | None:
    for fit in (Fit.ACCELERATORS, Fit.RAM):
        for trial in offer.tried:
            if trial in outcomes and outcomes[trial].fit == fit:
                return trial
    last = _last(offer)
    return last if last in outcomes and outcomes[last].fit != Fit.NOWHERE else None


def _refusal(one: Quantization, offer: Offer, outcomes: Outcomes) -> str:
    if one not in offer.candidates:
        return f"not quantized ({one.bits} bits a weight): taken by its name only"
    whole = FileTrial(quantization=one)
    for trial in (whole, _last(offer)):
        if (outcome := outcomes.get(trial)) and trial.quantization == one:
            return outcome.reason or f"it fits {outcome.fit} only"
    if not offer.may_fit(one):
        return f"no host has more than {human_bytes(offer.most or 0)} for its weights"
    if whole in offer.tried:
        return "smaller than the chosen one"
    return f"not tried: only {MOST_TRIED} are, and the smallest"


def _last(offer: Offer) -> FileTrial:
    """The last resort: the smallest, with everything that the spec allows."""
    return FileTrial(quantization=offer.candidates[-1], whole=False)
