"""Values that vLLM names when it refuses to start, for use in a second try.

The patterns of its messages are in `causes.py`; their named groups are in `Failure.named`.
"""

from collections.abc import Mapping
from math import floor

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB, human_bytes
from moorage.engines.recovery import Remedy
from moorage.memory.need import STEPS, Need

LEAST_TOKENS = 256
"""Least context to accept: a shorter one hardly holds a chat template and an answer."""

MARGIN = GIB // 4
"""Bytes of free memory left unused, because the log rounds sizes and sizes change a little."""

LENGTH, SHARE, SEQS = "--max-model-len", "--gpu-memory-utilization", "--max-num-seqs"


def remedy_for(failure: Failure, need: Need | None) -> Remedy | None:
    """The value with which vLLM would start; None = it named none."""
    if failure.cause == Cause.ENGINE_ACCELERATOR_BUSY:
        return _free_share(failure.named, need)
    if {"seqs", "blocks"} <= failure.named.keys():
        return _states(failure.named["seqs"], failure.named["blocks"])
    limit = LENGTH_LIMITS.get(failure.cause)
    return _length(failure.named, limit) if limit else None


LENGTH_LIMITS = {
    Cause.ENGINE_KV_CACHE_TOO_SMALL: "its KV cache holds",
    Cause.ENGINE_CONTEXT_TOO_LONG: "the model was made for",
}
"""The limit of the length that vLLM names, by cause, as the end of a sentence."""


def _length(named: Mapping[str, str], limit: str) -> Remedy | None:
    if not {"asked", "length"} <= named.keys():
        return None
    asked, length = int(named["asked"]), int(named["length"])
    if not LEAST_TOKENS <= length < asked:
        return None
    reason = f"vLLM itself named it as the longest that {limit}"
    return Remedy(
        option=LENGTH, before=str(asked), value=str(length), fields=("context",), reason=reason
    )


def _states(seqs: str, blocks: str) -> Remedy | None:
    if not 0 < int(blocks) < int(seqs):
        return None
    reason = "vLLM itself named it as the most recurrent states that its cache holds"
    return Remedy(option=SEQS, before=seqs, value=blocks, reason=reason)


def _free_share(named: Mapping[str, str], need: Need | None) -> Remedy | None:
    """The free share, if weights, working memory and one request fit into it.

    vLLM requires `ceil(total x share)` free bytes (`v1/worker/utils.py:request_memory`). Without a
    prediction it is unknown what fits, and another place is the better advice.
    """
    if need is None or not {"free", "total", "share"} <= named.keys():
        return None
    free, total = (float(named[name]) * GIB for name in ("free", "total"))
    share = floor((free - MARGIN) / total * STEPS) / STEPS
    if not _least(need) <= total * share < total * float(named["share"]):
        return None
    reason = f"vLLM itself named {human_bytes(int(free))} of {human_bytes(int(total))} as free"
    return Remedy(option=SHARE, before=named["share"], value=f"{share:g}", reason=reason)


def _least(need: Need) -> int:
    """Bytes within the share for serving one request of the whole context at a time."""
    cache = need.term("kv_cache")
    return need.inside - (cache.bytes * (need.concurrency - 1) // need.concurrency if cache else 0)
