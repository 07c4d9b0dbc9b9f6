"""Parses tensor names of checkpoints, and tells how tensor parallelism splits each tensor.

Source: the linear and embedding layers that the constructors in `model_executor/models/` choose.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

LEAVES = (
    *("weight", "bias", "qweight", "qzeros", "scales", "g_idx", "weight_scale_inv"),
    *("weight_scale", "weight_packed", "weight_zero_point", "weight_shape", "weight_g_idx"),
    *("input_scale", "k_scale", "v_scale", "input_zero_point", "weight_global_scale"),
    *("weight_scale_2", "input_global_scale", "q_scale", "output_scale", "gamma", "beta"),
    *("q_zero_point", "k_zero_point", "v_zero_point"),
)
"""Last parts of tensor names that are parameters of the module named before them."""

WEIGHT_LEAVES = ("weight", "qweight", "weight_packed")
"""Leaves with the weight of a module, packed or not."""
OTHER_LEAVES = {
    **dict.fromkeys(("activation_scale", "qscale_act"), "input_scale"),
    "qscale_weight": "weight_scale",
}
"""Mistral's names of such parts, and vLLM's (`mistral.py`, `mistral3.py`)."""

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|layer)\.(\d+)\.")
TOWER = re.compile(
    r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder|vision_embedder|vit|audio_tower"
    r"|audio_encoder|audio_model|multi_modal_projector|embed_vision|embed_audio|mm_projector"
    r"|vision_embed_tokens|connector)\.|^mlp1\."
)
"""Encoders of images and sound, and the layers that join them to the language model."""

SIGHT = re.compile(r"(?:^|\.)(?:vis|vit\.|embed_vision\.)")
HEARING = "audio"
"""Encoders by what they read; the other modules of `TOWER` join either to the language model."""

NUMBER = re.compile(r"\.\d+(?=\.)")
EXPERT = re.compile(r"\.experts\.(\d+)\.")
"""Matches the number of a tensor's expert; stacked tensors of all experts have none."""

FUSED_EXPERT = re.compile(
    r"experts\.(?:mlp\.)?(gate_up_proj|down_proj|w1|w2|v1)(_bias|_blocks|_scales|_scale_inv)?$"
)
FUSED_LEAVES = {
    **{"_bias": "bias", "_blocks": "weight", "_scales": "weight_scale"},
    "_scale_inv": "weight_scale_inv",
}
EXPERT_LINEARS = ("block_sparse_moe.input_linear", "block_sparse_moe.output_linear")


@dataclass(frozen=True)
class TensorName:
    """A tensor's name, parsed.

    Attributes:
        layer: Index of its decoder layer; None = in no decoder layer.
        module: Name of its module without numbers.
        leaf: Name of the parameter, such as `weight`.
        stacked: Whether it holds all experts of a layer at once.
    """

    layer: int | None
    module: str
    leaf: str
    expert: bool
    stacked: bool

    @property
    def tower(self) -> bool:
        """Whether it belongs to an encoder of images or sound."""
        return TOWER.search(f"{self.module}.") is not None

    @property
    def sees(self) -> bool:
        """Whether it belongs to an encoder of images."""
        return SIGHT.search(f"{self.module}.") is not None

    @property
    def hears(self) -> bool:
        """Whether it belongs to an encoder of sound."""
        return self.tower and HEARING in self.module

    @property
    def last(self) -> str:
        """Last name of the module."""
        return self.module.rpartition(".")[2]

    @property
    def last_two(self) -> str:
        """Last two names of the module."""
        return ".".join(self.module.split(".")[-2:])


@lru_cache(maxsize=1 << 17)
def parse_name(name: str) -> TensorName:
    """Parse the name of a tensor."""
    numbered = None if TOWER.search(name) else LAYER.search(name)
    layer = int(numbered[1]) if numbered else None
    plain = NUMBER.sub("", name)
    fused = FUSED_EXPERT.search(plain)
    if fused:
        leaf = FUSED_LEAVES.get(fused[2] or "", "weight")
        return TensorName(layer, plain[: fused.end(1)], leaf, expert=True, stacked=True)
    module, _, leaf = plain.rpartition(".")
    leaf = OTHER_LEAVES.get(leaf, leaf)
    if leaf not in LEAVES:
        module, leaf = plain, ""
    stacked = module.endswith(EXPERT_LINEARS)
    return TensorName(layer, module, leaf, stacked or ".experts." in name, stacked)


class Split(StrEnum):
    """How a tensor is split over the ranks.

    Attributes:
        WHOLE: Not split: whole on every rank.
        COLUMN: By output: weight and bias.
        ROW: By input: the weight; the bias is whole.
        KV: By key/value heads; each rank has at least one.
        QKV: Queries by heads, keys and values by key/value heads, in one tensor.
        VOCABULARY: By tokens, after padding.
        STATE: Input of a Mamba 2 layer: inner width and heads split, at least one group per rank.
        SKIPPED: vLLM does not create it.
    """

    WHOLE = "whole"
    COLUMN = "column"
    ROW = "row"
    KV = "kv"
    QKV = "qkv"
    VOCABULARY = "vocabulary"
    STATE = "state"
    SKIPPED = "skipped"


EMBEDDINGS = (
    *("embed_tokens", "wte", "word_embeddings", "embeddings", "embedding", "tok_embeddings"),
    "embed_in",
)
"""Names of the table with a row for each token of the vocabulary."""

MODULES: dict[str, Split] = {
    **dict.fromkeys(("gate_proj", "up_proj", "w1", "w3", "gate_up_proj", "v1"), Split.COLUMN),
    **dict.fromkeys(("q_proj", "query", "wq", "q_b_proj", "kv_b_proj"), Split.COLUMN),
    **dict.fromkeys(("fc1", "c_fc", "c_fc_0", "c_fc_1", "fc_in", "fc11", "fc12"), Split.COLUMN),
    **dict.fromkeys(("dense_h_to_4h", "Wi", "dt_proj", "conv1d", "in_proj"), Split.COLUMN),
    **dict.fromkeys(("in_proj_qkvz", "in_proj_ba", "in_proj_qkv", "in_proj_z"), Split.COLUMN),
    **dict.fromkeys(("in_proj_a", "in_proj_b", "g_proj", "input_linear"), Split.COLUMN),
    **dict.fromkeys(("intermediate.dense", "conv.conv", "up_gate_proj"), Split.COLUMN),
    **dict.fromkeys(("A_log", "A", "D", "dt_bias", "sinks"), Split.COLUMN),
    "per_layer_model_projection": Split.COLUMN,
    **dict.fromkeys(("down_proj", "o_proj", "out_proj", "w2", "fc2", "c_proj"), Split.ROW),
    **dict.fromkeys(("dense_4h_to_h", "fc_out", "Wo", "wo", "x_proj", "dense"), Split.ROW),
    "output_linear": Split.ROW,
    **dict.fromkeys(("k_proj", "v_proj", "key", "value", "wk", "wv"), Split.KV),
    **dict.fromkeys(("qkv_proj", "query_key_value", "c_attn", "Wqkv", "wqkv"), Split.QKV),
    **dict.fromkeys(EMBEDDINGS, Split.VOCABULARY),
    **dict.fromkeys(("token_type_embeddings", "position_embeddings"), Split.VOCABULARY),
    "embed_tokens_per_layer": Split.VOCABULARY,
    **dict.fromkeys(("lm_head", "embed_out", "output_layer", "output"), Split.VOCABULARY),
    **dict.fromkeys(("gate", "router", "router.layer", "shared_expert_gate"), Split.WHOLE),
    **dict.fromkeys(("q_a_proj", "kv_a_proj_with_mqa", "classifier", "score"), Split.WHOLE),
    **dict.fromkeys(("wpe", "embed_positions", "conv1", "conv2", "project_in"), Split.WHOLE),
    **dict.fromkeys(("project_out", "per_layer_input_gate", "per_layer_projection"), Split.WHOLE),
    **dict.fromkeys(("e_score_correction_bias", "expert_bias", "layer_scalar"), Split.WHOLE),
    **dict.fromkeys(("pooler.dense", "head.dense", "classifier.dense"), Split.WHOLE),
    **dict.fromkeys(("classifier.out_proj", "transform.dense", "router.classifier"), Split.WHOLE),
    **dict.fromkeys(("cls.predictions", "wg", "linear"), Split.WHOLE),
    **dict.fromkeys(("correct_output_scale", "correction_coefs"), Split.WHOLE),
    **dict.fromkeys(("prediction_coefs", "modality_router", "alpha_p", "alpha_n"), Split.WHOLE),
    **dict.fromkeys(("linear_left", "altup_projections"), Split.COLUMN),
    **dict.fromkeys(("altup_unembed_projections", "gate_up_proj_adapter_list"), Split.COLUMN),
    **dict.fromkeys(("linear_q_adapter_list", "linear_k_adapter_list"), Split.COLUMN),
    "linear_v_adapter_list": Split.COLUMN,
    "linear_right": Split.ROW,
    **dict.fromkeys(("indexer.wq_b", "indexer.wk", "indexer.weights_proj"), Split.WHOLE),
    **dict.fromkeys(("a_proj", "b_proj", "attention_sink_bias"), Split.COLUMN),
    **dict.fromkeys(("q_conv1d", "k_conv1d", "v_conv1d"), Split.COLUMN),
    **dict.fromkeys(("inv_freq", "masked_bias", "position_ids"), Split.SKIPPED),
    **dict.fromkeys(("shared_head.head", "mlp.act_fn", "act_fn.eps"), Split.SKIPPED),
    **dict.fromkeys(("lm_head.dense", "lm_head.layer_norm", "lm_head.norm"), Split.SKIPPED),
    **dict.fromkeys(("f_a_proj", "g_a_proj", "fc1_latent_proj", "fc2_latent_proj"), Split.WHOLE),
    **dict.fromkeys(("f_b_proj", "g_b_proj"), Split.COLUMN),
}
"""Splits by the last name, or the last two names, of a module."""

TOWER_MODULES: dict[str, Split] = {
    **dict.fromkeys(("qkv", "linear_fc1", "merger.mlp", "fc1", "gate_proj"), Split.COLUMN),
    **dict.fromkeys(("k_proj", "v_proj", "q_proj", "up_proj", "wqkv"), Split.COLUMN),
    **dict.fromkeys(("merger.proj", "linear_1", "mlp.fc0"), Split.COLUMN),
    **dict.fromkeys(("linear_2", "projection_layer"), Split.ROW),
    **dict.fromkeys(("downsample", "projection", "cls_token", "class_embedding"), Split.WHOLE),
    **dict.fromkeys(("lambda_1", "lambda_2", "position_embeddings"), Split.WHOLE),
    **dict.fromkeys(("attn.proj", "linear_fc2", "out_proj", "fc2", "down_proj"), Split.ROW),
    **dict.fromkeys(("patch_embed.proj", "pos_embed", "patch_embedding"), Split.WHOLE),
    **dict.fromkeys(("position_embedding", "mm_input_projection_weight"), Split.WHOLE),
    **dict.fromkeys(("patch_embed.pos_emb", "mm_projector.proj", "mlp1"), Split.WHOLE),
    **dict.fromkeys(("positional_embedding_vlm", "position_embedding_table"), Split.WHOLE),
    **dict.fromkeys(("ls1", "ls2", "merging_layer", "patch_conv", "input_proj"), Split.WHOLE),
    "embedding_projection": Split.WHOLE,
}
"""Splits in encoders of images and sound; other modules follow `MODULES`."""

_MAMBA2 = {
    **dict.fromkeys(("in_proj", "conv1d"), Split.STATE),
    **dict.fromkeys(("mixer.norm", "mamba.norm"), Split.COLUMN),
}

_NORM_PER_HEAD = {"self_attn.q_norm": Split.COLUMN, "self_attn.k_norm": Split.KV}

SPLITS_BY_TYPE: dict[str, dict[str, Split]] = {
    "whisper": {"embed_tokens": Split.WHOLE, "proj_out": Split.SKIPPED},
    **dict.fromkeys(("mamba2", "nemotron_h", "granitemoehybrid", "falcon_h1", "zamba2"), _MAMBA2),
    "olmo_hybrid": dict.fromkeys(("linear_attn.k_proj", "linear_attn.v_proj"), Split.COLUMN),
    "cohere": _NORM_PER_HEAD,
    "minimax_m2": _NORM_PER_HEAD,
    "gpt_bigcode": dict.fromkeys(("c_fc", "mlp.c_proj"), Split.WHOLE),
    "persimmon": dict.fromkeys(
        ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"), Split.WHOLE
    ),
}
"""Splits by model type that differ from `MODULES`."""

NORM = re.compile(r"(?i)norm|^ln_|_ln$|^ln$")
"""Names of norms, which are whole on every rank."""

MASKS = re.compile(r"(?:^|\.)(?:attn|attention|rotary_emb)\.(?:bias|masked_bias|inv_freq)$")
"""Buffers in old checkpoints, which vLLM computes itself."""

SKIPPED_PARTS = re.compile(r"vision_(?:tower|model)\.head\.|^(?:talker|token2wav|code2wav)\.")
"""The pooling head of a SigLIP tower, and the parts of a model that speak."""


def split_of(name: TensorName, model_type: str) -> Split | None:
    """How a tensor is split; None = no rule covers it."""
    masks = MASKS.search(f"{name.module}.{name.leaf}".rstrip("."))
    if masks or "rotary_emb" in name.module or SKIPPED_PARTS.search(name.module):
        return Split.SKIPPED
    own = TOWER_MODULES if name.tower else SPLITS_BY_TYPE.get(model_type, {})
    for key in (name.last_two, name.last):
        if split := own.get(key) or MODULES.get(key):
            return split
    return Split.WHOLE if NORM.search(name.last) else None
