"""Which differences a case with `peer_defect` allows: those of the aspect that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.conformance.launch_compare import Difference

Case = Mapping[str, Any]

NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_-]{2,}")
ASPECTS = {
    "release candidate": (
        "--disable-access-log-for-endpoints",
        "--enable-prompt-tokens-details",
    ),
    "offload environment": ("LMCACHE_CHUNK_SIZE", "LMCACHE_MAX_LOCAL_CPU_SIZE"),
    "full command line is doubled": ("start", "first"),
}
"""By words of the defect: the options, variables or places that may differ."""

SIZES = (
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "data-parallel-size",
    "data-parallel-size-local",
)
FOLLOWING = (
    *(f"--{name}" for name in SIZES),
    *("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless"),
    *("--data-parallel-start-rank", "--data-parallel-address", "--data-parallel-rpc-port"),
    *("--data-parallel-backend", "VLLM_PORT", "VLLM_DP_MASTER_PORT"),
)
"""What follows from a size: one that the peer does not see changes all of them."""

JOINED = ("are not joined", "put into the command before it is split")
"""Defects of splitting: the same text, cut into other words."""


def excused(case: Case, difference: Difference) -> bool:
    """Whether a difference lies in the marked aspect.

    A refusal is always a better answer, and so is the value that the user set.
    """
    defect, (field, expected, got) = case.get("peer_defect") or "", difference
    if not defect:
        return False
    if field == "error":
        return expected is None and got is not None
    last = field.partition(".")[2]
    user = case["input"].get("model", {}).get("env") or {}
    if field.startswith("env.") and got is not None and user.get(last) == got:
        return True
    if any(last in places for words, places in ASPECTS.items() if words in defect):
        return True
    if any(words in defect for words in JOINED):
        return True
    named = NAMED.findall(defect)
    if last in FOLLOWING and any(name in named for name in SIZES):
        return True
    return last.lstrip("-") in named
