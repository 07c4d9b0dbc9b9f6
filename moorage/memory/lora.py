"""Buffers of LoRA adapters: vLLM allocates them at start for all targets, whatever it loads later.

Source: `lora/layers/`: `base_linear.py`, `column_parallel_linear.py`, `fused_moe.py`,
`vocab_parallel_embedding.py`, `logits_processor.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, prod
from typing import Any

from moorage.memory.dtypes import quantisation, quantisation_method
from moorage.memory.facts import Facts
from moorage.memory.options import LoraOptions
from moorage.memory.refusal import unknown
from moorage.memory.sharding import WEIGHT_LEAVES, Split, TensorName, parse_name, split_of
from moorage.models.source import TensorHeader

ELEMENT = 2
"""Bytes of an element; `lora_dtype` is the model's."""

PACKED_BITS = 32
"""Bits of the words into which quantised weights are packed."""

NOT_ADAPTED = ("vision", "visual", "audio", "encoder")
"""Parts of a model that adapters do not change."""

ADAPTS_EMBEDDINGS = (
    *("LlamaForCausalLM", "LLaMAForCausalLM", "InternLM3ForCausalLM", "IQuestCoderForCausalLM"),
    *("Phi3ForCausalLM", "Ernie4_5ForCausalLM", "TeleChat3ForCausalLM", "TeleFLMForCausalLM"),
    *("Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"),
    *("MixtralForCausalLM", "PhiMoEForCausalLM", "Param2MoEForCausalLM", "SolarForCausalLM"),
    *("GraniteForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"),
    *("GraniteMoeHybridForCausalLM", "CohereForCausalLM", "Cohere2ForCausalLM"),
    *("NemotronForCausalLM", "NemotronHForCausalLM", "JambaForCausalLM", "ApertusForCausalLM"),
    *("ExaoneForCausalLM", "Exaone4ForCausalLM", "ExaoneMoeForCausalLM", "Lfm2ForCausalLM"),
    *("Lfm2MoeForCausalLM", "FalconH1ForCausalLM", "MiniCPMForCausalLM"),
)
"""Architectures whose embedding and head can be adapted too (`embedding_modules`)."""

PACKED_NAMES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
"""Targets by vLLM's own names, and the modules that they merge."""


def lora_bytes(
    facts: Facts,
    tensors: Mapping[str, TensorHeader],
    options: LoraOptions | None,
    tensor: int,
    stages: Sequence[range],
) -> tuple[int, ...]:
    """Bytes of the buffers on one rank of each pipeline stage; 0 without LoRA options.

    `stages` are ranges of layers.

    Buffers of experts are an upper bound: vLLM allocates less if whole experts are spread over the
    ranks, or if gate and up are one tensor.
    """
    totals = [0] * len(stages)
    if options is None:
        return tuple(totals)
    slots = options.max_loras * options.max_rank * ELEMENT
    for name, header in _targets(facts, tensors, options):
        amount = slots * _width(facts, name, header, options, tensor)
        for stage, layers in enumerate(stages):
            if name.layer in layers:
                totals[stage] += amount
    for module, stage in (("embed_tokens", 0), ("lm_head", -1)):
        if facts.architecture in ADAPTS_EMBEDDINGS and module in (options.targets or (module,)):
            # Whole on every rank; the head has its own buffer even if its weights are tied.
            totals[stage] += slots * (facts.require("vocab_size") + facts.require("hidden_size"))
    return tuple(totals)


def _targets(
    facts: Facts, tensors: Mapping[str, TensorHeader], options: LoraOptions
) -> Iterator[tuple[TensorName, TensorHeader]]:
    if not tensors:
        raise unknown("without tensor headers the buffers of LoRA adapters are not known")
    wanted = options.targets
    named = None if wanted is None else {p for t in wanted for p in (t, *PACKED_NAMES.get(t, ()))}
    for text, header in tensors.items():
        name = parse_name(text)
        if name.leaf not in WEIGHT_LEAVES or len(header.shape) < 2:
            continue
        if any(part in name.module for part in NOT_ADAPTED):
            continue
        if name.layer is None or split_of(name, facts.model_type) in (None, Split.SKIPPED):
            continue
        own = {name.last, "experts"} if name.expert else {name.last}
        if named is None or own & named:
            yield name, header


def _width(
    facts: Facts, name: TensorName, header: TensorHeader, options: LoraOptions, tensor: int
) -> int:
    """Inputs plus outputs that one rank adapts: the factor on the split side is divided."""
    inputs, outputs, copies = _sides(facts, name, header)
    split = split_of(name, facts.model_type)
    if tensor == 1 or split is Split.WHOLE:
        return (inputs + outputs) * copies
    shares = min(tensor, max(1, facts.kv_heads)) if split is Split.KV else tensor
    whole = tensor if options.fully_sharded else 1
    if split is Split.ROW:
        return (ceil(inputs / tensor) + ceil(outputs / whole)) * copies
    return (ceil(inputs / whole) + ceil(outputs / shares)) * copies


def _sides(facts: Facts, name: TensorName, header: TensorHeader) -> tuple[int, int, int]:
    """Inputs, outputs, and the number of experts in the tensor."""
    *experts, first, second = header.shape
    if name.stacked:
        # Gate and up have one factor each on the side of their common input.
        return first * (2 if name.last == "gate_up_proj" else 1), second, prod(experts)
    if name.leaf == "weight":
        return second, header.shape[0], 1
    pack = PACKED_BITS // _bits(facts)
    if name.leaf == "weight_packed":
        return second * pack, first, 1
    if quantisation_method(facts) == "awq":
        return first, second * pack, 1
    return first * pack, second, 1


def _bits(facts: Facts) -> int:
    settings = quantisation(facts)
    groups = settings.get("config_groups")
    group: Any = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights: Any = group.get("weights") if isinstance(group, Mapping) else None
    bits = weights.get("num_bits") if isinstance(weights, Mapping) else settings.get("bits")
    if not isinstance(bits, int) or PACKED_BITS % bits:
        raise unknown("how the quantised weights are packed is not known")
    return bits
