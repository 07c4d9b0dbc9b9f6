"""What a person reads when nothing fits, or when something is overcommitted."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.baseline.found import gib
from moorage.placement.baseline.terms import Terms
from moorage.placement.baseline.utilization import FLAG


def header(terms: Terms) -> tuple[str, ...]:
    """What the model needs."""
    ram = f" and {gib(terms.ram)} of RAM" if terms.ram else ""
    lines = [f"The model requires approximately {gib(terms.claim)} of accelerator memory{ram}."]
    if terms.utilization:
        total = gib(terms.claim / terms.utilization)
        lines.append(
            f"With --{FLAG}={terms.utilization}, all accelerators together need {total}, and "
            f"{int(terms.utilization * 100)}% of each of them must be allocatable."
        )
    return tuple(lines)


def messages(terms: Terms, told: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The header and what the last strategy said that said anything.

    Args:
        terms: The request.
        told: The lines of each strategy, in the order in which they were tried.
    """
    tail = next((lines for lines in reversed(told) if lines), ())
    return (*header(terms), *tail)
