"""A comparison as a document, for the terminal."""

from __future__ import annotations

from moorage.operations.history.change import Change
from moorage.operations.history.comparison import Comparison
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
