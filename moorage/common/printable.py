"""Makes external text safe for terminals and pages."""

import re

UNSAFE = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, marks that change the text direction, and lone surrogates."""

COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")


def printable(text: str, *, coloured: bool = False) -> str:
    """The text with control characters escaped, as `\\x1b`.

    With `coloured`, colour codes are kept, such as in a log on a terminal.
    """
    if not coloured:
        return UNSAFE.sub(_written, text)
    parts = re.split(f"({COLOUR.pattern})", text)
    return "".join(part if COLOUR.match(part) else printable(part) for part in parts)


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def clipped(text: str, longest: int) -> str:
    """A text, shortened to a length."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


LONGEST = 120
"""Most characters of a shortened text."""


def short(text: str, most: int = LONGEST) -> str:
    """The text on one line, with escapes for unprintable characters, cut to `most` characters."""
    plain = text if text.isprintable() else text.encode("unicode_escape", "replace").decode()
    return plain if len(plain) <= most else f"{plain[:most]}..."
