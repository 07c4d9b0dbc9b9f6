"""Removes secrets from text: known values, and any text that looks like a secret."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Fewest characters of a known value: shorter values would occur in ordinary words."""

LOOKS_LIKE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{32,}|nvapi-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|eyJ(?:(?!-eyJ)[\w-]){10,}\.eyJ[\w-]{10,}\.[\w-]+)"
)
"""Tokens with a recognizable form: of the hub, GitHub, GitLab, OpenAI, NVIDIA, Slack and AWS, and
JSON web tokens. The match is linear in the length of a word, since engines may log any text."""

CREDENTIALS = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://[^/\s@:'\"]{0,99}:)[^/\s@'\"]+@")
"""A password in a URL, and the text before it."""

PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)

HIDDEN = "[secret]"


class Redactor:
    """Replaces secrets in text by their names, which are given by value."""

    def __init__(self, names: Mapping[str, str]) -> None:
        pairs = {text: name for value, name in names.items() for text in _writings(value)}
        self._names = pairs
        # The longest value first: one value may be a part of another.
        every = "|".join(map(re.escape, sorted(pairs, key=len, reverse=True)))
        self._known = re.compile(every) if every else None

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if self._known:
            text = self._known.sub(lambda match: f"[secret {self._names[match[0]]}]", text)
        for pattern in (PRIVATE_KEY, LOOKS_LIKE):
            text = pattern.sub(HIDDEN, text)
        return CREDENTIALS.sub(rf"\g<1>{HIDDEN}@", text)


def looks_like_a_secret(text: str) -> bool:
    """Whether a text contains a token or private key of a known form."""
    return any(pattern.search(text) for pattern in (LOOKS_LIKE, PRIVATE_KEY))


def has_password(text: str) -> bool:
    """Whether a text contains a URL with a password."""
    return bool(CREDENTIALS.search(text))


def _writings(value: str) -> Iterator[str]:
    """Spellings of a value: unchanged, in JSON, in Python, in a URL, and each line alone."""
    forms: Iterable[str] = (
        value,
        value.strip(),
        json.dumps(value)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        quote_plus(value),
        *(line.strip() for line in value.splitlines()),
    )
    return (form for form in forms if len(form) >= SHORTEST)
