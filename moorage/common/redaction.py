"""Taking secrets out of text: values that are known, and what looks like one wherever it is met."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Characters of a value that is looked for: a shorter one would turn up in ordinary words."""

LOOKS_LIKE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{32,}|nvapi-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|eyJ(?:(?!-eyJ)[\w-]){10,}\.eyJ[\w-]{10,}\.[\w-]+)"
)
"""Tokens that tell by their form what they are: of the hub, of GitHub and GitLab, of OpenAI and
NVIDIA, of Slack, of AWS, and JSON web tokens. Each word is read once, however often one begins in
it: an engine may write what it likes."""

CREDENTIALS = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://[^/\s@:'\"]{0,99}:)[^/\s@'\"]+@")
"""A password in a URL, and what stands before it."""

PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)

HIDDEN = "[secret]"


class Redactor:
    """Replaces secrets in text by their names.

    Args:
        names: By value of a secret, its name.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        pairs = {text: name for value, name in names.items() for text in _writings(value)}
        self._names = pairs
        # The longest first: one value may be a part of another.
        every = "|".join(map(re.escape, sorted(pairs, key=len, reverse=True)))
        self._known = re.compile(every) if every else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        if self._known:
            text = self._known.sub(lambda match: f"[secret {self._names[match[0]]}]", text)
        for pattern in (PRIVATE_KEY, LOOKS_LIKE):
            text = pattern.sub(HIDDEN, text)
        return CREDENTIALS.sub(rf"\g<1>{HIDDEN}@", text)


def looks_like_a_secret(text: str) -> bool:
    """Whether a text gives itself away as a value that nobody should see."""
    return any(pattern.search(text) for pattern in (LOOKS_LIKE, PRIVATE_KEY))


def has_password(text: str) -> bool:
    """Whether there is a URL with a password in it."""
    return bool(CREDENTIALS.search(text))


def _writings(value: str) -> Iterator[str]:
    """How a value may be written: as it is, in JSON, in a URL, in Python, line by line."""
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
