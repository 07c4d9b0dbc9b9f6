"""A placement as a person reads it."""

from __future__ import annotations

from moorage.common.units import human_bytes
from moorage.memory.estimates import Term
from moorage.placement.explanation import rows, summary
from moorage.placement.placement import Placement, Seat
from moorage.reports.document import Document, Section


def placement_document(model: str, placement: Placement) -> Document:
    """Where a model runs or could not, as a page of its own. A long reason wraps in a document."""
    first, *others = placement_sections(placement)
    named = first.model_copy(update={"title": ""})
    return Document(title=f"Placement of {model}", sections=(named, *others))


def placement_sections(placement: Placement | None) -> list[Section]:
    """Seats, what became of every host, and what the memory is for; nothing without a placement."""
    if placement is None:
        return []
    seats = placement.seats
    lines = [f"Policy: {placement.policy}", *summary(placement.verdicts)]
    lines += [placement.stop_first] if placement.stop_first else []
    lines += [f"Moved: {placement.moved}"] if placement.moved else []
    lines += [f"Nearest: {placement.shortage}"] if placement.shortage else []
    lines += placement.remedies
    lines += [f"Trouble: {trouble}" for trouble in placement.troubles]
    return [
        Section(
            title="Placement",
            text="\n".join(lines),
            header=("seat", "accelerators", "why"),
            rows=tuple((_seat_name(seat), _accelerators(seat), seat.reason) for seat in seats),
        ),
        Section(
            header=("host", "outcome", "why"),
            rows=tuple(rows(placement.verdicts, placement.terms, {seat.host for seat in seats})),
        ),
        *_memory(seats),
    ]


def _seat_name(seat: Seat) -> str:
    return f"replica {seat.replica} {seat.role} on {seat.place}"


def _accelerators(seat: Seat) -> str:
    return ", ".join(f"{seat.accelerator_type}:{index}" for index in seat.accelerators) or "none"


def _memory(seats: tuple[Seat, ...]) -> list[Section]:
    """What the memory of one seat is for; the seats of a release are alike."""
    for seat in seats:
        if seat.need:
            need, name = seat.need, "memory of one accelerator"
            split = (
                f"{human_bytes(need.inside)} within the engine's budget,"
                f" {human_bytes(need.outside)} outside of it"
            )
            return [_terms(name, need.tokens, need.concurrency, need.terms, split)]
        if seat.cpu_need:
            ram = seat.cpu_need
            size = f"{human_bytes(ram.ram)} of RAM"
            return [_terms("RAM", ram.tokens, ram.concurrency, ram.terms, size)]
    return []


def _terms(name: str, tokens: int, concurrency: int, terms: tuple[Term, ...], size: str) -> Section:
    rows = tuple(
        (term.name, human_bytes(term.bytes), "exact" if term.exact else "estimate", term.reason)
        for term in terms
        if term.bytes
    )
    text = f"For {tokens} tokens, {concurrency} at once: {size}."
    return Section(title="Memory", text=text, header=(name, "size", "", "why"), rows=rows)
