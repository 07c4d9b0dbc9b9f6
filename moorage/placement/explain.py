"""Telling a person why hosts were refused."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.placement import Verdict


def explain(verdicts: Sequence[Verdict]) -> str:
    """One line a refused host, each with its named reason and numbers."""
    refused = [verdict for verdict in verdicts if verdict.refusal]
    lines = [f"{verdict.host}: {verdict.refusal}: {verdict.detail}" for verdict in refused]
    return "\n".join(lines) or "every host would do"


def table(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """Rows for a table: host, outcome, detail."""
    return [{"host": v.host, "outcome": v.refusal or "fits", "detail": v.detail} for v in verdicts]
