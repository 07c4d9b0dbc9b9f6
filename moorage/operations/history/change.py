"""One difference, and how values are written in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from moorage.common.values import Origin, Value
from moorage.spec.tokenize import is_option

HIDDEN = "(hidden)"

_TELLING = re.compile(r"(?:^|[-_.])(?:key|token|password|secret)$", re.IGNORECASE)
"""Options whose value is nobody's business, though a secret has no place on a command line."""


class Change(Value):
    """Something that two releases have not in common.

    Attributes:
        what: The field, flag, variable or figure.
        before: Its value; None = it was not there.
        after: Its value now; None = it is gone.
        origin_before: Who decided it, where that is known.
        origin_after: Who decides it now.
        where: Containers that it is about, such as `r0 leader`; empty = all of them.
        ratio: How many times as much it is now, of a figure that both have.
    """

    what: str
    before: str | None = None
    after: str | None = None
    origin_before: Origin | None = None
    origin_after: Origin | None = None
    where: tuple[str, ...] = ()
    ratio: float | None = None


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """What differs between two sets of facts, in the order of the newer one, then of the older."""
    return tuple(
        Change(what=name, before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*after, *before))
        if before.get(name) != after.get(name)
    )


def written(tokens: Sequence[str]) -> str:
    """Words of a command line, without the values of options that are named like a secret."""
    shown, hides = [], False
    for token in tokens:
        name, equals, _ = token.partition("=")
        if is_option(token):
            tells = bool(_TELLING.search(name))
            shown.append(f"{name}={HIDDEN}" if tells and equals else token)
            hides = tells and not equals
        else:
            shown.append(HIDDEN if hides else token)
            hides = False
    return " ".join(shown)
