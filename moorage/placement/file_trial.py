"""One quantization of a model, to be placed: what is tried, and what became of it."""

from dataclasses import dataclass
from enum import StrEnum

from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.models.quantizations import Quantization
from moorage.placement.explanation import explain, nearest_miss
from moorage.placement.placement import Placement, Seat
from moorage.placement.propose import NoFit
from moorage.spec import ModelSpec


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


def outcome_of(proposed: Placement | NoFit) -> Outcome:
    """What became of a trial, from what was proposed for it.

    What the spec states of memory is a limit here: a file that needs more is not chosen.
    """
    if isinstance(proposed, NoFit):
        verdicts = proposed.placement.verdicts
        return Outcome(Fit.NOWHERE, nearest_miss(verdicts) or explain(verdicts))
    if lack := shortfall(proposed):
        return Outcome(Fit.NOWHERE, lack)
    if any(seat.layers for seat in proposed.seats):
        return Outcome(Fit.PARTLY)
    whole = all(seat.accelerators for seat in proposed.seats)
    return Outcome(Fit.ACCELERATORS if whole else Fit.RAM)


def shortfall(placement: Placement) -> str:
    """Of the first seat for which the spec states too little; empty = there is none."""
    return next(filter(None, map(_lack, placement.seats)), "")


def _lack(seat: Seat) -> str:
    """What the spec states less of than is needed, with both numbers; empty = nothing."""
    need, ram = seat.need, seat.cpu_need
    if need and need.stated is not None and need.stated < need.inside + need.outside:
        return _short("memory.claim", need.stated, need.inside + need.outside)
    if ram and seat.ram_bytes < ram.ram:
        return _short("placement.ram", seat.ram_bytes, ram.ram)
    return ""


def _short(field: str, stated: int, needed: int) -> str:
    return f"{field} is {human_bytes(stated)}, {human_bytes(needed)} are needed"
