"""Text from outside, made safe for terminals and pages."""

import re

UNSAFE = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, marks that turn the direction of text, and lone surrogates."""

COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")


def printable(text: str, *, coloured: bool = False) -> str:
    """The text, with what a terminal would obey written out, as `\\x1b`.

    Colours stay where it is `coloured`, such as a log on a terminal.
    """
    if not coloured:
        return UNSAFE.sub(_written, text)
    plain = COLOUR.split(text)
    colours = [*COLOUR.findall(text), ""]
    return "".join(
        part for pair in zip(map(printable, plain), colours, strict=True) for part in pair
    )


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


LONGEST = 120
"""Characters."""


def short(text: str, most: int = LONGEST) -> str:
    """The text on one line, with escapes for what cannot be printed, and cut where it is long."""
    plain = text if text.isprintable() else text.encode("unicode_escape", "replace").decode()
    return plain if len(plain) <= most else f"{plain[:most]}..."
