"""Arguments as users write them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from moorage.failures import Cause, Failure


def user_tokens(entries: Sequence[str]) -> tuple[str, ...]:
    """Split `engine.args` into words: an entry is one word, or a whole line such as `--a b`.

    An entry that starts with a dash and holds spaces is split as a shell would; `--k = v` and
    `--k =v` become `--k=v`. Any other entry (a JSON value, say) stays whole.

    Raises:
        Failure: `BAD_SPEC` when a quote is not closed.
    """
    tokens: list[str] = []
    for raw in entries:
        entry = raw.strip()
        name, equals, value = entry.partition("=")
        if entry.startswith("-") and equals and " " not in name.strip():
            tokens.append(f"{name.strip()}={value.strip()}")
        elif entry.startswith("-") and " " in entry:
            tokens.extend(_split(entry))
        else:
            tokens.append(entry)
    return tuple(tokens)


def _split(entry: str) -> list[str]:
    try:
        return shlex.split(entry)
    except ValueError as error:
        raise Failure(Cause.BAD_SPEC, f"engine.args: {entry}: {error}") from error


def has_argument(tokens: Sequence[str], flag: str) -> bool:
    """Whether the user's words contain an option, in either writing (`--a b`, `--a=b`, `--a_b`)."""
    if not flag.startswith("--"):
        return False
    wanted = flag.partition("=")[0].replace("_", "-")
    return any(token.partition("=")[0].replace("_", "-") == wanted for token in tokens)
