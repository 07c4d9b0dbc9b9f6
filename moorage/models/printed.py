"""Texts of strangers in messages: short, and without what a terminal would obey."""

from __future__ import annotations

LONGEST = 120
"""Characters."""


def short(text: str, most: int = LONGEST) -> str:
    """The text on one line, with escapes for what cannot be printed, and cut where it is long."""
    plain = text if text.isprintable() else text.encode("unicode_escape", "replace").decode()
    return plain if len(plain) <= most else f"{plain[:most]}..."
