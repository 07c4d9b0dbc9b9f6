"""Estimates of the memory besides weights and KV cache; a spec can state most of them.

Unless a source is given, a formula follows the buffers that vLLM 0.32 allocates. Compared with
vLLM 0.26 on an H100 (`tests/memory/test_measured.py`), a whole claim is up to 0.7 GiB too large; a
single estimate may be a quarter to four times the real size.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter

from moorage.common.refusal import Refusal
from moorage.common.units import MIB, human_bytes
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.facts import Facts
from moorage.memory.graph_place import Place, graph_place
from moorage.memory.layer_caches import uses_mla
from moorage.memory.need import Term
from moorage.memory.options import MemoryOptions
from moorage.memory.refusal import unknown

ELEMENT = 2
"""Bytes of an element; vLLM casts float32 to a two-byte type."""

LOGIT_BYTES = 10
"""Bytes for each logit: original, float32 copy, sorted float32 copy (`v1/sample/sampler.py`)."""

REDUNDANCY = 150 * MIB + 4 * MIB
"""Bytes that vLLM holds back (`v1/worker/gpu_worker.py`, 150 MiB), and its small buffers."""

SLOT = 4
"""Bytes of the place of one token in SGLang's table of requests, allocated next to its cache.

Source: `mem_cache/memory_pool.py:ReqToTokenPool` (0.5.23).
"""

CONTEXT = 563 * MIB
"""Bytes of a CUDA context: 0.5 to 0.6 GiB on current drivers."""

NCCL = 512 * MIB
"""Bytes of NCCL's buffers; with the context, logs of two ranks show 0.9 to 1.1 GiB."""

GRAPHS_BASE, GRAPH_EACH = 256 * MIB, 15 * MIB
"""Bytes for all CUDA graphs and for each one.

On an H100, 51 graphs took 0.98 GiB with 32 layers of width 4096, and 0.50 with 28 of width 1024.
Two measurements do not show how the size grows, so the larger one counts for all models.
"""

GRAPH_LIMIT = 512
"""Largest batch with a graph (`config/vllm.py`); twice that on compute capability 10."""

ACTIVE_KEYS = ("num_experts_per_tok", "moe_topk", "moe_top_k", "top_k_experts", "moe_k")
ACTIVE_WHEN_UNKNOWN = 8
EXPERT_WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size", "ffn_hidden_size")


def step_terms(setup: EngineSetup, caches: bool) -> Iterator[Term]:
    """The estimates that depend on the scheduler step; graphs need a KV cache (`caches`)."""
    stated = setup.options.stated.activation
    yield _term("activation", stated, lambda: activation(setup))
    yield from _graph_terms(setup, caches)
    yield _term("buffers", None, lambda: rope_buffers(setup.facts))
    why = "held back by vLLM, and small buffers"
    if setup.options.sglang:
        why = "the rest of a thousandth of the accelerator, and a cache of pictures"
    yield Term.estimate("redundancy", REDUNDANCY, why)
    if not setup.pools and stated is None:
        yield _term("sampling", None, lambda: sampling(setup), inside=False)
    if setup.options.sglang:
        rows, tokens = setup.batch.seqs + 1, setup.query.tokens
        formula = f"{rows} requests x {tokens} tokens x {SLOT} B"
        yield Term.estimate("request_table", rows * tokens * SLOT, formula)


def outer_terms(options: MemoryOptions, ranks: int) -> Iterator[Term]:
    """The estimates of memory taken before the engine measures, in addition to its budget."""
    stated = options.stated
    driver = (CONTEXT, "the driver's context of one process")
    yield _term("context", stated.context, lambda: driver, inside=False)
    if ranks > 1:
        buffers = (NCCL, f"{ranks} ranks talk to each other")
        yield _term("nccl", stated.nccl, lambda: buffers, inside=False)


def activation(setup: EngineSetup) -> tuple[int, str]:
    """Peak of the intermediate results in the profiling run: in a layer, or for the logits.

    Source: `fused_moe/experts/triton_moe.py:workspace_shapes` for experts, the layers of
    `model_executor/models/llama.py` otherwise. The encoder of a multimodal model is not counted.
    """
    layer = _layer(setup)
    logits = layer if setup.pools else _logits(setup)
    return max(logits, layer, key=itemgetter(0))


def sampling(setup: EngineSetup) -> tuple[int, str]:
    """Memory that the sampler takes beyond a layer, after the KV cache is allocated.

    vLLM's second model runner measures a step without top-k and top-p, so it gives their memory to
    the cache (`v1/worker/gpu/model_runner.py:_dummy_sampler_run`). Its warm-up uses both, and
    their memory stays allocated, outside the budget.
    """
    logits, formula = _logits(setup)
    layer, _ = _layer(setup)
    return max(0, logits - layer), f"{formula} - {human_bytes(layer)} of a layer"


def cuda_graphs(setup: EngineSetup, caches: bool) -> tuple[int, str]:
    """Memory of the captured CUDA graphs."""
    if setup.options.enforce_eager:
        option = "--disable-cuda-graph" if setup.options.sglang else "--enforce-eager"
        return 0, f"none with {option}"
    if not caches:
        return 0, "none without a KV cache"
    number = setup.options.graph_sizes or _graphs(setup)
    size = GRAPHS_BASE + number * GRAPH_EACH
    return size, f"{human_bytes(GRAPHS_BASE)} + {number} graphs x {human_bytes(GRAPH_EACH)}"


def rope_buffers(facts: Facts) -> tuple[int, str]:
    """Tables of rotary positions: one for each rope, in the model's element type.

    Source: `model_executor/layers/rotary_embedding/`.
    """
    if not facts.heads:
        return 0, "no attention"
    positions = facts.get("max_position_embeddings")
    positions = positions if isinstance(positions, int) else facts.longest
    lengths = [int(positions * factor) for factor in _rope_factors(facts)]
    width = _rotated(facts)
    sizes = " + ".join(map(str, lengths))
    return sum(lengths) * width * ELEMENT, f"{sizes} positions x {width} x {ELEMENT} B"


def _term(
    name: str, stated: int | None, estimate: Callable[[], tuple[int, str]], inside: bool = True
) -> Term:
    # A stated value needs no estimate, which might fail.
    try:
        size, reason = estimate() if stated is None else (int(stated), f"memory.{name} in the spec")
    except Refusal as why:
        raise unknown(f"no estimate of {name}: {why}; `memory.{name}` states its bytes") from None
    return Term.estimate(name, size, reason, inside=inside)


def _graph_terms(setup: EngineSetup, caches: bool) -> Iterator[Term]:
    """Terms of the graphs: inside or outside the share, or both if that is uncertain.

    Too small a share would leave too little for the KV cache, and vLLM would not start.
    """
    stated = setup.options.stated.cuda_graphs
    graphs = _term("cuda_graphs", stated, lambda: cuda_graphs(setup, caches))
    if not graphs.bytes:
        yield graphs
        return
    place, why = graph_place(setup)
    reason, inside = "; ".join(filter(None, (graphs.reason, why))), place is Place.INSIDE
    yield graphs.model_copy(update={"inside": inside, "reason": reason})
    if place is Place.EITHER:
        why = "as much within the share, for it may be set aside there"
        yield Term.estimate("graph_reserve", graphs.bytes, why)


def _stream(setup: EngineSetup) -> int:
    return setup.batch.tokens * setup.facts.require("hidden_size") * ELEMENT


def _layer(setup: EngineSetup) -> tuple[int, str]:
    size = 3 * _stream(setup) + max(_attention(setup), _feed_forward(setup))
    tokens, hidden = setup.batch.tokens, setup.facts.require("hidden_size")
    return size, f"a layer with {tokens} tokens of width {hidden}"


def _logits(setup: EngineSetup) -> tuple[int, str]:
    rows, words = min(setup.batch.seqs, setup.batch.tokens), setup.facts.require("vocab_size")
    formula, stream = f"{rows} requests x {words} logits x {LOGIT_BYTES} B", _stream(setup)
    return rows * words * LOGIT_BYTES + stream, f"{formula} + {human_bytes(stream)}"


def _attention(setup: EngineSetup) -> int:
    facts = setup.facts
    if not facts.heads:
        return 0
    width = (facts.heads + 2 * facts.kv_heads) * facts.head_size
    return setup.batch.tokens * width * ELEMENT // setup.query.tensor


def _feed_forward(setup: EngineSetup) -> int:
    facts, tokens, hidden = setup.facts, setup.batch.tokens, setup.facts.require("hidden_size")
    width = facts.positive(("intermediate_size",), largest=True) or 4 * hidden
    if not facts.experts:
        return 3 * tokens * width * ELEMENT // setup.query.tensor
    width = 2 * (facts.positive(EXPERT_WIDTH_KEYS, largest=True) or width)
    # Each rank computes its part of the experts for the tokens of all copies.
    tokens *= setup.copies
    width //= setup.settings().ranks_of_expert
    active = facts.positive(ACTIVE_KEYS, largest=True) or min(ACTIVE_WHEN_UNKNOWN, facts.experts)
    slots = max(width // 2, hidden) + max(width, hidden)
    return tokens * (active * slots + hidden) * ELEMENT


def _graphs(setup: EngineSetup) -> int:
    """The number of captured batch sizes: 1, 2, 4, every 8th to 256, every 16th beyond."""
    draft = setup.options.draft
    each = 1 + (draft.tokens if draft else 0)
    limit = setup.options.graph_limit or min(2 * setup.batch.seqs * each, GRAPH_LIMIT)
    limit = min(limit, setup.batch.tokens)
    sizes = {size for size in (1, 2, 4) if size <= limit}
    sizes |= set(range(8, min(limit + 1, 256), 8)) | set(range(256, limit + 1, 16))
    return max(1, len(sizes))


def _rope_factors(facts: Facts) -> list[float]:
    factors = [
        factor if kind in ("linear", "dynamic") and factor else 1.0 for kind, factor in facts.ropes
    ]
    # Models whose local layers use another base have a second, unscaled rope.
    if len(factors) < 2 and facts.get("rope_local_base_freq"):
        factors.append(1.0)
    return factors or [1.0]


def _rotated(facts: Facts) -> int:
    if uses_mla(facts):
        return facts.require("qk_rope_head_dim")
    share = facts.get("partial_rotary_factor")
    return int(facts.head_size * share) if isinstance(share, float) else facts.head_size
