"""The history of releases as documents: states, comparisons, and what an apply did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.common.units import human_seconds
from moorage.operations.history.changes import Change
from moorage.operations.history.comparison import Comparison
from moorage.operations.history.desired import Applied
from moorage.releases.states import FINAL, Stay
from moorage.reports.document import Document, Section

PARTS = {
    "spec": "Spec",
    "revision": "Revisions",
    "image": "Image",
    "flags": "Flags",
    "environment": "Environment",
    "placement": "Placement",
    "measured": "Measured",
}
"""Parts of a comparison, and what they are called."""

STATE_COLUMNS = ("state", "since", "for", "why", "flow run", "requested by")
NOT_THERE = "-"
SWITCHED_ON = "(on)"


def comparison_document(comparison: Comparison) -> Document:
    """What differs, part by part; parts without a difference are left out."""
    same = "Both run the same thing at the same place." if comparison.is_same else ""
    sections = [Section(text=same)] if same else []
    sections += [
        section(title, getattr(comparison, name), comparison.before, comparison.after)
        for name, title in PARTS.items()
        if getattr(comparison, name)
    ]
    title = f"{comparison.before} and {comparison.after}"
    return Document(title=title, sections=tuple(sections))


def section(title: str, changes: tuple[Change, ...], before: str, after: str) -> Section:
    """One part as a table."""
    rows = tuple((one.what, _cell(one.before), _cell(one.after), _note(one)) for one in changes)
    return Section(title=title, header=("", before, after, ""), rows=rows)


def applied_document(ended: Sequence[Applied]) -> Document:
    """What came of all of them, failures first."""
    rows = [
        (one.model, one.action, one.outcome, one.release or "-", one.message)
        for one in sorted(ended, key=lambda one: one.outcome != "failed")
    ]
    header = ("model", "action", "outcome", "release", "message")
    return Document(title="Applied", sections=(Section(header=header, rows=tuple(rows)),))


def timeline_section(states: Sequence[Stay], now: datetime | None = None) -> Section:
    """The states as a table.

    Args:
        states: As `stays` returns them.
        now: The duration of the last state is counted up to here; None = it is left out.
    """
    rows = tuple(
        (
            stay.state,
            f"{stay.since:%Y-%m-%d %H:%M:%S}",
            _lasted(stay, now),
            stay.cause,
            stay.flow_run_id,
            stay.requested_by,
        )
        for stay in states
    )
    # Nobody wrote it down in a ledger of an older moorage.
    width = (
        len(STATE_COLUMNS) if any(stay.requested_by for stay in states) else len(STATE_COLUMNS) - 1
    )
    shown = tuple(row[:width] for row in rows)
    return Section(title="States (UTC)", header=STATE_COLUMNS[:width], rows=shown)


def _cell(text: str | None) -> str:
    if text is None:
        return NOT_THERE
    return text or SWITCHED_ON


def _note(change: Change) -> str:
    origins = [str(one) for one in (change.origin_before, change.origin_after) if one]
    parts = [" -> ".join(dict.fromkeys(origins))]
    parts += [f"only {', '.join(change.where)}"] if change.where else []
    parts += [f"{change.ratio:g} times"] if change.ratio is not None else []
    return "; ".join(part for part in parts if part)


def _lasted(stay: Stay, now: datetime | None) -> str:
    if stay.seconds is not None:
        return human_seconds(stay.seconds)
    if now is None or stay.state in FINAL:
        return ""
    return f"{human_seconds((now - stay.since).total_seconds())} so far"
