"""One trial to place a quantization of a model, and its outcome."""

from dataclasses import dataclass
from enum import StrEnum

from moorage.common.failures import Cause
from moorage.common.refusal import Reason
from moorage.common.values import Value
from moorage.models.quantizations import Quantization
from moorage.placement.explanation import Verdict, explain, nearest_miss
from moorage.placement.placement import Placement, Seat
from moorage.placement.propose import NoFit
from moorage.spec import ModelSpec

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


def in_whole(spec: ModelSpec) -> ModelSpec:
    """The spec with partial offload and overcommitment forbidden."""
    changes = {"partial_offload": False, "overcommit": False}
    placement = spec.placement.model_copy(update=changes)
    return spec.model_copy(update={"placement": placement})


def within_limits(proposed: Placement | NoFit) -> Placement | NoFit:
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


def outcome_of(proposed: Placement | NoFit) -> FileOutcome:
    """The outcome of a trial, from its proposed placement."""
    if isinstance(proposed, NoFit):
        verdicts = proposed.placement.verdicts
        return FileOutcome(Fit.NOWHERE, nearest_miss(verdicts) or explain(verdicts))
    if any(seat.layers for seat in proposed.seats):
        return FileOutcome(Fit.PARTLY)
    whole = all(seat.accelerators for seat in proposed.seats)
    return FileOutcome(Fit.ACCELERATORS if whole else Fit.RAM)


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
