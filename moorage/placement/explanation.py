"""The verdict on each host, and its rendering as lines and table rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.inventory.snapshot import HostSnapshot

MOST_NAMED = 4
"""Most releases named as holders; the others are counted."""


@dataclass(slots=True, unsafe_hash=True)
class Verdict:
    """The verdict on one host.

    Treat it as immutable: a frozen dataclass takes ten times as long to create. `note` to `held_by`
    are those of a `Refusal`.

    Attributes:
        refusal: The named reason; None = the host could take the model.
        score: Out of 100, for a host that could take the model.
        points: Parts of the score, in the order of the placement's `terms`.
    """

    host: str
    refusal: Reason | None = None
    note: str = ""
    needed: int = 0
    available: int = 0
    count: int = 0
    there: int = 0
    held_by: tuple[str, ...] = ()
    score: float = 0.0
    points: tuple[float, ...] = ()

    @classmethod
    def of(cls, host: str, refusal: Refusal) -> Verdict:
        """The verdict of a host that is refused."""
        numbers = refusal.needed, refusal.available, refusal.count, refusal.there
        return cls(host, refusal.reason, refusal.note, *numbers, refusal.held_by)

    @property
    def detail(self) -> str:
        """The reason with its numbers, or the score."""
        last = ""
        if self.refusal is None and (self.needed or self.score or self.points):
            last = f"score {self.score:.1f}"
        elif self.refusal and self.held_by:
            last = f"held by {first_names(self.held_by, MOST_NAMED)}"
        return "; ".join(filter(None, (self._numbers(), self.note, last)))

    def _numbers(self) -> str:
        if not self.needed:
            return ""
        if self.refusal == Reason.CORES:
            return f"{self.needed} cores needed, {self.available} available"
        numbers = f"{human_bytes(self.needed)} needed, {human_bytes(self.available)} available"
        if not self.count:
            return f"{'disk of models' if self.refusal == Reason.DISK else 'RAM'}: {numbers}"
        of = f" (of {self.there})" if self.there else ""
        return f"{numbers} on each of {self.count}{of}"


MOST_SHOWN = 12


def explain(verdicts: Sequence[Verdict]) -> str:
    """Why hosts were refused: a count by reason if there are several hosts, then host by host.

    The nearest misses come first; hosts with the same reason and numbers share a line.
    """
    lines = _refusals(verdicts)
    if not lines:
        return "every host would do" if verdicts else "the fleet has no hosts"
    return "\n".join([*summary(verdicts), *_cut(lines)])


def nearest_miss(verdicts: Sequence[Verdict]) -> str:
    """The line of `explain` about the nearest miss; empty = no host was refused."""
    return next(iter(_refusals(verdicts)), "")


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """One line that counts the hosts by reason; empty for a single host, or without refusals."""
    counts = Counter(verdict.refusal for verdict in verdicts if verdict.refusal)
    if len(verdicts) < 2 or not counts:
        return []
    parts = [f"{number} {reason}" for reason, number in counts.most_common()]
    return [f"{counts.total()} of {len(verdicts)} hosts refused: {', '.join(parts)}"]


def troubles(hosts: Iterable[HostSnapshot]) -> tuple[str, ...]:
    """Survey errors by host, which may be why a host is not chosen."""
    return tuple(_cut([f"{host.name}: {trouble}" for host in hosts for trouble in host.troubles]))


def first_names(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def rows(
    verdicts: Sequence[Verdict], terms: Sequence[str], chosen: Collection[str]
) -> list[tuple[str, str, str]]:
    """Rows of a table that fits one screen: hosts, outcome, reason.

    The chosen hosts come first, with the parts of their score; `terms` names the parts.
    """
    taken = [
        (verdict.host, "taken", f"{verdict.detail}{_parts(verdict, terms)}")
        for verdict in verdicts
        if verdict.host in chosen
    ]
    others = [verdict for verdict in verdicts if verdict.host not in chosen]
    able = sorted((v for v in others if not v.refusal), key=lambda v: -v.score)
    refused = sorted((v for v in others if v.refusal), key=_miss)
    return [*taken, *_shown(_grouped(able)), *_shown(_grouped(refused))]


def _refusals(verdicts: Iterable[Verdict]) -> list[str]:
    """The refused hosts with their reasons, the nearest misses first."""
    refused = sorted((verdict for verdict in verdicts if verdict.refusal), key=_miss)
    return [f"{hosts}: {outcome}: {why}" for hosts, outcome, why in _grouped(refused)]


def _grouped(verdicts: Sequence[Verdict]) -> list[tuple[str, str, str]]:
    """Rows in which hosts with the same reason and numbers are grouped."""
    alike: dict[tuple[object, ...], list[Verdict]] = {}
    for one in verdicts:
        available = human_bytes(one.available)
        score = 0.0 if one.refusal else round(one.score, 1)
        numbers = one.needed, available, one.count, one.there, score
        key = (one.refusal, one.note, one.held_by, *numbers)
        alike.setdefault(key, []).append(one)
    return [
        (first_names([one.host for one in group]), group[0].refusal or "fits", group[0].detail)
        for group in alike.values()
    ]


def _shown(lines: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    if len(lines) <= MOST_SHOWN:
        return lines
    return [*lines[:MOST_SHOWN], (f"... {len(lines) - MOST_SHOWN} more", lines[-1][1], "")]


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_SHOWN:
        return lines
    return [*lines[:MOST_SHOWN], f"... and {len(lines) - MOST_SHOWN} more"]


def _parts(verdict: Verdict, terms: Sequence[str]) -> str:
    named = zip(terms, verdict.points, strict=False)
    parts = ", ".join(f"{name} {points:.1f}" for name, points in named if points)
    return f" ({parts})" if parts else ""


def _miss(verdict: Verdict) -> tuple[bool, int]:
    return (not verdict.needed, verdict.needed - verdict.available)
