"""The choice among the quantizations of a model: the largest that fits whole.

It proceeds step by step, because the header of each quantization must be read before its trial.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.units import human_bytes
from moorage.inventory.claims import Capacity, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.quantizations import FilesChoice, FileVerdict, Quantization
from moorage.models.weights import LONGEST_HEADERS
from moorage.placement.file_trial import FileOutcome, FileTrial, Fit, outcome_of, within_limits
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit
from moorage.spec import ModelSpec

MOST_TRIED = 12
"""Most quantizations to read, besides the smallest: a header may take `LONGEST_HEADERS` bytes."""


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
            proposed = within_limits(propose(trial))
            outcomes[trial] = outcome_of(proposed)
        except Failure as failure:
            if failure.cause not in UNREADABLE:
                raise
            proposed = proposed or failure
            outcomes[trial] = FileOutcome(Fit.NOWHERE, failure.detail)
    choice = _decide(offer, outcomes)
    if isinstance(proposed, NoFit) and not choice.pattern:
        raise NoQuantizationFits(proposed, choice)
    if isinstance(proposed, Failure) and not choice.pattern:
        raise proposed
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
