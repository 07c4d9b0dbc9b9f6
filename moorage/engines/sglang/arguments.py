"""SGLang's derived arguments, in their order on the command line."""

import json

from moorage.engines.base import Busy
from moorage.engines.command_line import batch_flags, length_flags, trust_flags
from moorage.engines.companions import adapters, draft_path
from moorage.engines.flags import Flag, default_flag, derived_flag, spec_flag
from moorage.engines.request import LaunchRequest
from moorage.engines.sglang.distributed import host_flags, parallel_flags
from moorage.engines.sglang.memory import memory_flags
from moorage.engines.sglang.options import ALGORITHM, ALGORITHMS, CHUNK, EMBEDDING
from moorage.models.profile import ModelProfile
from moorage.spec import DraftMethod, Mode, SpeculativeSpec

IN_FLIGHT = Busy(
    path="/metrics",
    running="sglang:num_running_reqs",
    waiting="sglang:num_queue_reqs",
    answering='sglang:http_requests_active{method="POST"}',
    generated='sglang:realtime_tokens_total{mode="decode",pp_rank="0"}',
    progress=("sglang:realtime_tokens_total", "sglang:generation_tokens_total"),
)
"""As of SGLang 0.5.23 (`observability/metrics_collector.py`); its API key does not guard them.

The running requests change after a prefill, which they do not count yet, and then with every 40th
step. So a request is in none of the two for seconds. The generated tokens change with each step, on
each pipeline stage; `sglang:generation_tokens_total` only when a request ends. SGLang 0.5.6 has
neither of the exact ones.
"""


def derived_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Everything between the model and the user's own arguments."""
    step = batch_flags(request, CHUNK, "--max-running-requests")
    if request.profile.mode == Mode.RERANKING:  # its prompts are never cut
        step = tuple(flag for flag in step if flag.tokens[0] != CHUNK)
    return (
        *length_flags(request, "--context-length"),
        *parallel_flags(request),
        *host_flags(request),
        *memory_flags(request),
        *step,
        *mode_flags(request.profile),
        *speculative_flags(request.spec.speculative, draft_path(request)),
        *adapter_flags(request),
        default_flag("requests in flight and progress are read there", "--enable-metrics"),
        *trust_flags(request.spec),
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
    words = {ALGORITHM: ALGORITHMS[speculative.method]}
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
