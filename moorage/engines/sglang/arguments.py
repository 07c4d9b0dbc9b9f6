"""SGLang's derived arguments, in their order on the command line."""

import json

from moorage.engines.base import Busy
from moorage.engines.command_line import batch_flags, length_flags
from moorage.engines.companions import adapters, draft_path
from moorage.engines.flags import Flag, default_flag, derived_flag, spec_flag
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import claimed_accelerators
from moorage.engines.sglang.distributed import host_flags, parallel_flags
from moorage.engines.sglang.options import CHUNK, EMBEDDING
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import Accelerator
from moorage.memory.need import Need
from moorage.memory.static_part import FRACTION, after_cache, before_loading, least_static
from moorage.models.profile import ModelProfile
from moorage.placement.fit import claimed_amounts
from moorage.placement.placement import Seat
from moorage.spec import Mode
from moorage.spec.model import DraftMethod, SpeculativeSpec

IN_FLIGHT = Busy(
    path="/metrics",
    running="sglang:num_running_reqs",
    waiting="sglang:num_queue_reqs",
    generated="sglang:generation_tokens_total",
    progress=("sglang:generation_tokens_total",),
)
"""As of SGLang 0.5.23 (`observability/metrics_collector.py`); its API key does not guard them."""

ALGORITHMS = {
    DraftMethod.NGRAM: "NGRAM",
    DraftMethod.MTP: "NEXTN",
    DraftMethod.EAGLE3: "EAGLE3",
    DraftMethod.DRAFT_MODEL: "STANDALONE",
}


def derived_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Everything between the model and the user's own arguments."""
    trusted = request.spec.trust_remote_code
    step = batch_flags(request, CHUNK, "--max-running-requests")
    if request.profile.mode == Mode.RERANKING:  # its prompts are never cut
        step = tuple(flag for flag in step if flag.tokens[0] != CHUNK)
    return (
        *length_flags(request, "--context-length"),
        *parallel_flags(request),
        *host_flags(request),
        *_memory(request),
        *step,
        *mode_flags(request.profile),
        *speculative_flags(request.spec.speculative, draft_path(request)),
        *adapter_flags(request),
        default_flag("requests in flight and progress are read there", "--enable-metrics"),
        *([spec_flag("trust_remote_code", "--trust-remote-code")] if trusted else []),
    )


def mode_flags(profile: ModelProfile) -> tuple[Flag, ...]:
    """The flags for a mode that does not generate text.

    A cross-encoder runs without prefix cache and without chunked prefill (SGLang's documentation of
    rerank models).
    """
    reason = f"mode {profile.mode}"
    flags = {
        Mode.EMBEDDING: ((EMBEDDING,),),
        Mode.RERANKING: (
            (EMBEDDING,),
            ("--disable-radix-cache",),
            (CHUNK, "-1"),
        ),
    }
    return tuple(
        Flag(tokens=tokens, origin=profile.mode_origin, reason=reason)
        for tokens in flags.get(profile.mode, ())
    )


def speculative_flags(speculative: SpeculativeSpec | None, draft: str) -> tuple[Flag, ...]:
    """Algorithm, draft model and lengths; a chain of n steps is verified as n + 1 tokens."""
    if speculative is None:
        return ()
    words = {"--speculative-algorithm": ALGORITHMS[speculative.method]}
    if draft:
        words["--speculative-draft-model-path"] = draft
    if speculative.tokens and speculative.method == DraftMethod.NGRAM:
        words["--speculative-num-draft-tokens"] = str(speculative.tokens)
    elif speculative.tokens:
        words["--speculative-num-steps"] = str(speculative.tokens)
        words["--speculative-eagle-topk"] = "1"
        words["--speculative-num-draft-tokens"] = str(speculative.tokens + 1)
    if speculative.ngram_max:
        words["--speculative-ngram-max-trie-depth"] = str(speculative.ngram_max)
    return tuple(spec_flag(f"{speculative.method} drafts", *pair) for pair in words.items())


def adapter_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """LoRA's switch, adapters, their number in a batch, rank, and modules of later adapters.

    SGLang counts "no adapter" as one more adapter.
    """
    items, later = adapters(request), request.spec.lora_updates
    if not (items or later) or request.spec.engine.arguments.states("--lora-paths"):
        return ()
    listed = [json.dumps({"lora_name": item.name, "lora_path": item.path}) for item in items]
    rank = max([*(item.rank or 0 for item in items), later.rank if later else 0])
    most = len(items) + (later.max if later else 0)
    number = f"{most} adapters at once, and requests without one"
    modules = "adapters that are loaded later may change any of them"
    return (
        spec_flag("lora" if items else "lora_updates", "--enable-lora"),
        *([spec_flag("lora", "--lora-paths", *listed)] if items else []),
        derived_flag(number, "--max-loras-per-batch", str(most + 1)),
        *([derived_flag("the largest rank", "--max-lora-rank", str(rank))] if rank else []),
        *([derived_flag(modules, "--lora-target-modules", "all")] if later else []),
    )


def _memory(request: LaunchRequest) -> tuple[Flag, ...]:
    fraction, limit = _static_fraction(request), _token_limit(request)
    share = "weights and cache of the claim, of what is free when it starts"
    shared = "others claim a part of the accelerator: the cache stays within the claim"
    return (
        *([derived_flag(share, FRACTION, f"{fraction:g}")] if fraction else []),
        *([derived_flag(shared, "--max-total-tokens", str(limit))] if limit else []),
    )


STEPS = 1000
LARGEST = 0.99


def _static_fraction(request: LaunchRequest) -> float | None:
    """The `--mem-fraction-static`, in thousandths, whose part of the free memory is the claim's.

    SGLang 0.5.23 sizes its cache as `free after loading - free before loading x (1 - fraction)`
    (`mem_cache/kv_cache_configurator.py`, `_profile_available_bytes`). So the fraction applies to
    the memory that is free at the start, not to the whole accelerator. It is rounded down, which
    leaves what is taken later its memory, unless weights and cache then have too little.
    """
    seat = request.seat
    if not seat.accelerators or seat.need is None:
        return None
    free = min(_free(request, item, seat.need) for item in claimed_accelerators(request))
    if free <= 0:
        return LARGEST
    steps = _static(seat) * STEPS // free
    if free * steps < least_static(seat.need) * STEPS:
        steps += 1
    return min(LARGEST, max(1, steps) / STEPS)


def _free(request: LaunchRequest, item: Accelerator, need: Need) -> int:
    """Bytes of an accelerator that are free when the engine starts to load."""
    total, host = item.memory_total, request.host
    claimed, pending = claimed_amounts(host.claims)
    settled = claimed.get(item.index, 0) - pending.get(item.index, 0)
    strangers = max(0, total - item.memory_free - settled)
    return total - _others(request, item.index) - strangers - before_loading(need)


def _token_limit(request: LaunchRequest) -> int | None:
    """Tokens of the cache on accelerators that other releases claim too; None = no limit.

    At the start, others may not have taken all of their claims yet. The cache must not take those.
    """
    need = request.seat.need
    cache = need.term("kv_cache") if need else None
    if not (need and cache and cache.bytes):
        return None
    if not any(_others(request, index) for index in request.seat.accelerators):
        return None
    room = max(cache.bytes, _static(request.seat) - least_static(need) + cache.bytes)
    return int(room * need.tokens * need.concurrency / cache.bytes)


def _static(seat: Seat) -> int:
    """Bytes of the claim for weights, adapters, draft model and cache."""
    assert seat.need is not None
    return max(0, min(seat.accelerator_bytes) - before_loading(seat.need) - after_cache(seat.need))


def _others(request: LaunchRequest, index: int) -> int:
    """Bytes of an accelerator that other releases claim."""
    return sum(
        claim.amount
        for claim in request.host.claims
        if claim.resource == Resource.ACCELERATOR and claim.index == index
        if claim.release != request.release
    )
