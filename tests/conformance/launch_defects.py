"""Which differences a case with `peer_defect` allows: those of the aspect that it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.conformance.launch_compare import Difference

Case = Mapping[str, Any]

NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_-]{2,}")
GATED = ("--disable-access-log-for-endpoints", "--enable-prompt-tokens-details")
ASPECTS = {
    "release candidate": GATED,
    "order of versions": GATED,
    "offload environment": ("LMCACHE_CHUNK_SIZE", "LMCACHE_MAX_LOCAL_CPU_SIZE"),
    "full command line is doubled": ("start", "first"),
}
"""By words of the defect: the options, variables or places that may differ."""

SPLIT = "before it is split"
"""Of a defect that cuts what a run command is filled with, which may end in a refusal."""

CUT = ("user_argv", "argv", "command", "injected", "injected_stored")
"""Where words of the user stand."""

BETWEEN = re.compile(r"[\s\"'\\=]")
"""What words are cut and joined at."""


def excused(case: Case, difference: Difference, answer: Case) -> bool:
    """Whether a difference lies in the marked aspect.

    A refusal is always a better answer, and so is the same text, cut into other words.

    Args:
        case: With what is expected, and the mark.
        difference: Between that and the answer.
        answer: All of it.
    """
    defect, (field, expected, got) = case.get("peer_defect") or "", difference
    if not defect:
        return False
    if field == "error":
        return got is not None if expected is None else SPLIT in defect and got is None
    place, _, last = field.partition(".")
    if any(last in places for words, places in ASPECTS.items() if words in defect):
        return True
    if last.lstrip("-") in NAMED.findall(defect):
        return True
    return place in CUT and (SPLIT in defect or _is_same_text(case["expected"], answer))


def _is_same_text(expected: Case, answer: Case) -> bool:
    """Letter by letter; options may stand in another order."""
    field = next(name for name in CUT if name in expected)
    wanted, got = ("".join(words) for words in (expected[field], answer[field]))
    return Counter(BETWEEN.sub("", wanted)) == Counter(BETWEEN.sub("", got))
