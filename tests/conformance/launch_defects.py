"""Which differences a case with `peer_defect` allows: those of the aspect that it names."""

from __future__ import annotations

import re
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

JOINED = ("are not joined", "put into the command before it is split", "quotes", "JSON")
"""Defects of splitting: the same text, cut into other words."""

CUT = ("user_argv", "argv", "command", "injected", "injected_stored")
"""Where such words stand."""


def excused(case: Case, difference: Difference) -> bool:
    """Whether a difference lies in the marked aspect.

    A refusal is always a better answer. Splitting words in another way may also make an answer of
    what the peer refuses.
    """
    defect, (field, expected, got) = case.get("peer_defect") or "", difference
    if not defect:
        return False
    if field == "error":
        split = any(words in defect for words in JOINED)
        return got is not None if expected is None else split and got is None
    last = field.partition(".")[2]
    if any(last in places for words, places in ASPECTS.items() if words in defect):
        return True
    if field.partition(".")[0] in CUT and any(words in defect for words in JOINED):
        return True
    return last.lstrip("-") in NAMED.findall(defect)
