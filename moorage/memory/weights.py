"""Bytes of the parameters that each rank of a pipeline stage creates.

Source: the constructors in `model_executor/models/`, `make_layers` and `PPMissingLayer`, and the
`create_weights` of `model_executor/layers/quantization/`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from moorage.memory.architectures import (
    CLASSIFIER_ENDINGS,
    NEVER_TIED,
    ON_EVERY_STAGE,
    TIED_BY_DEFAULT,
    Part,
)
from moorage.memory.dtypes import pools, quantisation_method, require_known, size_of
from moorage.memory.facts import Facts
from moorage.memory.layer_caches import uses_mla
from moorage.memory.options import MemorySettings
from moorage.memory.parameters import KEPT, Kind, created_dtype, created_with
from moorage.memory.refusal import unknown
from moorage.memory.sharding import (
    EMBEDDINGS,
    EXPERT,
    WEIGHT_LEAVES,
    Split,
    TensorName,
    parse_name,
    split_of,
)
from moorage.memory.shares import rank_elements
from moorage.models.source import TensorHeader

HEADS = ("lm_head", "embed_out", "output_layer", "output")

PARTS = {
    **dict.fromkeys(HEADS, Part.HEAD),
    **dict.fromkeys(("wte", "wpe", "project_in", "conv1", "conv2"), Part.EMBEDDING),
    "per_layer_model_projection": Part.EMBEDDING,
    "per_layer_projection_norm": Part.EMBEDDING,
    **dict.fromkeys(("ln_f", "embedding_norm", "project_out", "score", "classifier"), Part.NORM),
}
"""Parts by the last name of a module, for names that do not show the part."""


def stages_of(facts: Facts, name: TensorName, tied: bool, stages: Sequence[range]) -> Sequence[int]:
    """Indexes of the stages that hold a tensor; `tied`: the head is tied to the embedding."""
    every = range(len(stages))
    if len(stages) == 1:
        return every
    if name.layer is not None:
        return [i for i in every if name.layer in stages[i]]
    if name.tower:
        return every
    part = _part(facts, name)
    if part in ON_EVERY_STAGE.get(facts.architecture, frozenset()):
        return every
    if part is Part.EMBEDDING:
        return sorted({0, len(stages) - 1}) if tied else [0]
    if part is Part.OTHER:
        raise unknown(f"on which pipeline stages {name.module!r} lies is not known")
    return [len(stages) - 1]


def _part(facts: Facts, name: TensorName) -> Part:
    if part := PARTS.get(name.last):
        return part
    if split_of(name, facts.model_type) is Split.VOCABULARY or "emb" in name.module:
        return Part.EMBEDDING
    if "norm" in name.last.lower():
        return Part.NORM
    return Part.OTHER


HEADS_OF: dict[str, tuple[str, ...]] = {
    "pooler.dense": ("ForSequenceClassification",),
    "head.dense": CLASSIFIER_ENDINGS,
    "head.norm": CLASSIFIER_ENDINGS,
    **dict.fromkeys(
        ("cls.predictions", "transform.dense", "transform.LayerNorm"),
        ("BertForMaskedLM", "BertSpladeSparseEmbeddingModel"),
    ),
}
"""Endings of the architectures that create a module; others ignore it in the checkpoint."""

HEADED_CLASSIFIERS = ("JambaForSequenceClassification",)
"""Classifiers that keep the language-model head of the class that they extend."""

HEADED_MODELS = ("LlamaModel", "MistralModel", "Qwen2Model", "Gemma2Model", *HEADED_CLASSIFIERS)
"""Architectures without a head, which vLLM runs with a class that has one."""

UNUSED_LEAVES = {"gptq": ("g_idx",)}
"""Leaves for which a quantisation method creates no parameter."""

COPIED = "kv_b_proj"
"""The layer that expands the compressed keys and values of MLA."""

MERGED_LEAVES = ("weight_g_idx", "weight_shape")
MERGED_AWAY = ("k_proj", "v_proj", "up_proj", "w3")
"""Layers merged into the layer before them, so that they have no such leaf themselves."""

MOST_KINDS = 20_000
"""Most tensors that differ in more than their expert's number; a layer has about twenty."""


class Tensors:
    """The headers of a checkpoint, up to 100,000, counted once for one configuration."""

    def __init__(self, headers: Mapping[str, TensorHeader]) -> None:
        self.headers = headers
        self._kinds: tuple[Counter[Kind], Counter[Kind]] | None = None

    def kinds(self, facts: Facts) -> tuple[Counter[Kind], Counter[Kind]]:
        """The number of parameters of each kind: of the model, and of the layers that draft.

        Raises:
            Refusal: When there are no headers, or more kinds than any model has.
        """
        if not self.headers:
            raise unknown("there are no tensor headers")
        if self._kinds is None:
            self._kinds = _count(facts, self.headers)
        return self._kinds


def vocabulary_rows(tensors: Mapping[str, TensorHeader]) -> int:
    """Rows of the embedding of tokens; 0 = none is found.

    vLLM loads an embedding only if it has as many rows as the configuration's vocabulary
    (`vocab_parallel_embedding.py`).
    """
    names = (text for text in tensors if text.removesuffix(".weight").endswith(EMBEDDINGS))
    found = ((parse_name(text), tensors[text].shape) for text in names)
    return next((shape[0] for name, shape in found if shape and _is_embedding(name)), 0)


def _is_embedding(name: TensorName) -> bool:
    return name.last in EMBEDDINGS and not name.tower and split_of(name, "") is Split.VOCABULARY


def stage_weights(
    facts: Facts,
    tensors: Tensors,
    settings: MemorySettings,
    dtype: str,
    stages: Sequence[range],
) -> tuple[int, ...]:
    """Bytes of the parameters on one rank of each pipeline stage; `stages` are ranges of layers."""
    require_known(facts, settings)
    counts = tensors.kinds(facts)[0].copy()
    packed = any(kind.name.leaf == "weight_packed" for kind in counts)
    counts.update(_unlisted_head(facts, counts))
    tied = _is_tied(facts, counts)
    headless = tied or _is_headless(facts, settings)
    totals = [0] * len(stages)
    for kind, count in counts.items():
        if headless and kind.name.last in HEADS:
            continue
        split = split_of(kind.name, facts.model_type)
        if kind.name.tower and (settings.whole_towers or split is None):
            split = Split.WHOLE
        size = size_of(created_dtype(facts, kind, dtype, packed))
        amount = count * rank_elements(facts, kind, split, settings) * size
        for stage in stages_of(facts, kind.name, tied, stages):
            totals[stage] += ceil(amount)
    return tuple(totals)


def attention_copies(
    facts: Facts, tensors: Tensors, settings: MemorySettings, dtype: str, stages: Sequence[range]
) -> tuple[int, ...]:
    """Bytes of quantised MLA weights that each rank keeps once more, as unquantised parameters.

    vLLM multiplies by the parts of `kv_b_proj` in 16 bits. Those of an unquantised weight are views
    of it. Source (0.26, 0.32): `mla_attention.py:process_weights_after_loading`.
    """
    totals = [0] * len(stages)
    if not uses_mla(facts) or settings.sglang:
        return tuple(totals)
    for kind, count in tensors.kinds(facts)[0].items():
        name = kind.name
        if name.last == COPIED and name.leaf in WEIGHT_LEAVES and kind.header.dtype in KEPT:
            heads = facts.heads // settings.tensor_parallel_size
            head = facts.require("qk_nope_head_dim") + facts.require("v_head_dim")
            size = count * heads * head * facts.require("kv_lora_rank") * size_of(dtype)
            for stage in stages_of(facts, name, False, stages):
                totals[stage] += size
    return tuple(totals)


def predictor_weights(facts: Facts, tensors: Tensors, settings: MemorySettings, dtype: str) -> int:
    """Bytes on one rank of the layers that draft (MTP); a module without a rule counts whole."""
    counts, total = tensors.kinds(facts)[1], 0
    packed = any(kind.name.leaf == "weight_packed" for kind in counts)
    for kind, count in counts.items():
        split = split_of(kind.name, facts.model_type) or Split.WHOLE
        size = size_of(created_dtype(facts, kind, dtype, packed))
        total += ceil(count * rank_elements(facts, kind, split, settings) * size)
    return total


def without_rule(facts: Facts, tensors: Tensors, settings: MemorySettings) -> str:
    """A module of an encoder that counts whole on each rank for want of a rule; empty = none."""
    if settings.tensor_parallel_size == 1 or settings.whole_towers:
        return ""
    kinds = (one for one in tensors.kinds(facts)[0] if one.name.tower and one.header.elements > 1)
    names = (kind.name for kind in kinds)
    return min((n.module for n in names if not split_of(n, facts.model_type)), default="")


def _count(
    facts: Facts, tensors: Mapping[str, TensorHeader]
) -> tuple[Counter[Kind], Counter[Kind]]:
    found: Counter[Kind] = Counter()
    for (text, header), number in _without_experts(tensors, facts.experts).items():
        found[Kind(parse_name(text), header)] += number
        if len(found) > MOST_KINDS:
            raise unknown(f"there are more than {MOST_KINDS:,} different tensors")
    counts: Counter[Kind] = Counter()
    predictor: Counter[Kind] = Counter()
    unused, layers = UNUSED_LEAVES.get(quantisation_method(facts), ()), facts.layers
    for kind, number in found.items():
        name = kind.name
        if name.leaf in unused or (name.leaf in MERGED_LEAVES and name.last in MERGED_AWAY):
            continue
        if split_of(name, facts.model_type) is Split.SKIPPED:
            continue
        drafts = _drafts(name, layers)
        if drafts or _is_created(facts, name):
            for created in created_with(facts, kind):
                (predictor if drafts else counts)[created] += number
    return counts, predictor


def _without_experts(
    tensors: Mapping[str, TensorHeader], experts: int
) -> Counter[tuple[str, TensorHeader]]:
    """Counts of tensors that differ only in their expert's number; surplus experts are dropped.

    Nearly all tensors of a large model belong to experts, so few names remain to be parsed.
    """
    found: Counter[tuple[str, TensorHeader]] = Counter()
    for text, header in tensors.items():
        plain = text
        if expert := EXPERT.search(text):
            if experts and int(expert[1]) >= experts:
                continue
            plain = f"{text[: expert.start(1)]}0{text[expert.end(1) :]}"
        found[plain, header] += 1
    return found


DRAFTING = re.compile(r"(?:^|\.)mtp[._]")
"""Matches the modules of layers that draft."""


def _drafts(name: TensorName, layers: int) -> bool:
    """Whether it belongs to layers for speculative decoding, created only if they draft."""
    beyond = name.layer is not None and name.layer >= layers and "encoder" not in name.module
    return beyond or DRAFTING.search(name.module) is not None


def _is_created(facts: Facts, name: TensorName) -> bool:
    if facts.model_type == "phi" and name.last in HEADS and name.leaf == "bias":
        return False  # only the checkpoint has this bias
    return facts.architecture.endswith(HEADS_OF.get(name.last_two, ("",)))


def _unlisted_head(facts: Facts, counts: Counter[Kind]) -> Counter[Kind]:
    """The head that the model class creates although the checkpoint has none."""
    architecture = facts.architecture
    untied = architecture in HEADED_MODELS and not facts.get("tie_word_embeddings")
    if not (untied or architecture in NEVER_TIED) or _has_head(counts):
        return Counter()
    name = TensorName(None, HEADS[0], "weight", expert=False, stacked=False)
    heads = [Kind(name, kind.header) for kind in counts if kind.name.last == "embed_tokens"]
    return Counter(heads[:1])


def _has_head(counts: Counter[Kind]) -> bool:
    return any(kind.name.last in HEADS for kind in counts)


def _is_headless(facts: Facts, settings: MemorySettings) -> bool:
    name = facts.architecture
    without = pools(facts, settings.runner) or name.endswith("ForMaskedLM")
    return without and name not in HEADED_CLASSIFIERS


def _is_tied(facts: Facts, counts: Counter[Kind]) -> bool:
    if facts.architecture in NEVER_TIED:
        return False
    tied = facts.config.get("tie_word_embeddings", facts.get("tie_word_embeddings"))
    if tied is None:
        classifies = facts.architecture.endswith(CLASSIFIER_ENDINGS)
        return facts.model_type in TIED_BY_DEFAULT or not (_has_head(counts) or classifies)
    return bool(tied)
