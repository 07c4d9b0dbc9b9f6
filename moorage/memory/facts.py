"""Sizes of a model from its config.json, read as vLLM reads them.

Source: `transformers_utils/model_arch_config_convertor.py`, `config/model.py`, and the defaults of
the configuration classes of transformers 5.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.memory.config_defaults import class_default
from moorage.memory.refusal import rejected, unknown
from moorage.models.config import LENGTH_KEYS, Config, architectures, text_config
from moorage.models.rope import MOST, RopeRule, rope_factor, rope_settings, rope_type, scaled_length

ALIASES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "decoder_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "hidden_size": ("n_embd", "d_model"),
    "vocab_size": ("padded_vocab_size",),
    "intermediate_size": ("n_inner", "ffn_dim"),
    "torch_dtype": ("dtype",),
    "conv_dim": ("hidden_size",),
    "mamba_num_heads": ("num_heads",),
}
"""Other names of a fact, by the name used here."""

LENGTH_WHEN_UNKNOWN = 2048
KV_HEAD_KEYS = (
    *("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num"),
    "num_attention_groups",
)
EXPERT_KEYS = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")

HEAD_SIZE_KEYS = {"zamba2": "attention_head_dim"}
LAYER_KEYS = {"longcat_flash": "num_layers"}
"""Keys of the head size and of the number of layers in model types that name them differently."""


class Facts:
    """Reads one configuration; raises a refusal if a required fact is missing."""

    def __init__(self, config: Config, rope: RopeRule = RopeRule.HELD) -> None:
        self.config, self.rope_rule = config, rope
        self.text = _text(config)
        self.model_type = str(self.text.get("model_type") or config.get("model_type") or "")
        names = architectures(config)
        if not names:
            raise unknown("the configuration names no architecture")
        self.architecture = names[0]

    def get(self, key: str) -> Any:
        """A fact under any of its names, else the default of its model type, else None.

        A key that is present but null gives None, as in the configuration classes.
        """
        names = (key, *ALIASES.get(key, ()))
        for name in names:
            if self.text.get(name) is not None:
                return self.text[name]
        if any(name in self.text for name in names):
            return None
        default = class_default(self.model_type, *names)
        return self.config.get(key) if default is None else default

    def require(self, key: str) -> int:
        """A fact that must be a whole number."""
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise unknown(f"the configuration does not say `{key}`")
        return value

    def number(self, key: str) -> int:
        """A fact as a whole number; 0 if it is anything else."""
        value = self.get(key)
        return value if isinstance(value, int) else 0

    def positive(self, keys: Sequence[str], *, largest: bool = False) -> int:
        """The first of these facts above 0; of a list, its first or largest item; 0 = none."""
        for key in keys:
            value = self.get(key)
            items = value if isinstance(value, list) else [value]
            numbers = [item for item in (items if largest else items[:1]) if isinstance(item, int)]
            if (number := max(numbers, default=0)) > 0:
                return number
        return 0

    def sequence(self, key: str, part: str = "") -> Sequence[Any]:
        """A fact that is a list, or a text with one letter per layer; else empty.

        With `part`, the fact is read from the mapping of that name.
        """
        value = self.get(part or key)
        if part:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, list | tuple | str) else ()

    @property
    def layers(self) -> int:
        """Decoder layers."""
        key = LAYER_KEYS.get(self.model_type, "num_hidden_layers")
        if (layers := self.require(key)) > 0:
            return layers
        raise unknown(f"the configuration says `{key}: {layers}`")

    @property
    def heads(self) -> int:
        """Attention heads; 0 in models without attention."""
        return self.number("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """Heads of the keys and values, over all ranks."""
        if self.get("multi_query") and not self.get("new_decoder_architecture"):
            return 1
        attention = self.text.get("attn_config")
        if isinstance(attention, Mapping) and isinstance(attention.get("kv_n_heads"), int):
            return int(attention["kv_n_heads"])
        stated = (value for key in KV_HEAD_KEYS if isinstance(value := self.get(key), int))
        return next(stated, self.heads)

    @property
    def head_size(self) -> int:
        """Elements of one head."""
        value = self.get(HEAD_SIZE_KEYS.get(self.model_type, "head_dim"))
        if isinstance(value, int) and value > 0:
            return value
        if not self.heads:
            raise unknown("the configuration does not say `num_attention_heads`")
        return self.require("hidden_size") // self.heads

    @property
    def experts(self) -> int:
        """Routed experts of a layer; 0 in dense models."""
        if experts := self.positive(EXPERT_KEYS):
            return experts
        layer = self.text.get("ffn_config")
        value = layer.get("moe_num_experts") if isinstance(layer, Mapping) else None
        return value if isinstance(value, int) else 0

    @property
    def longest(self) -> int:
        """Longest context in tokens that vLLM derives. Source: `_get_and_verify_max_len`."""
        length = int(self._written_length)
        if not self._written_length:
            return LENGTH_WHEN_UNKNOWN
        if self._has_longrope:
            return self.number("original_max_position_embeddings") or length
        if "gemma3" in str(self.config.get("model_type") or ""):
            return length
        return scaled_length(length, self.text, self.rope_rule)

    @property
    def _written_length(self) -> float:
        lengths = [v for key in LENGTH_KEYS if isinstance(v := self.get(key), int)]
        own = self.text.get("model_max_length")
        return float(own if own and isinstance(own, int | float) else min(lengths, default=0))

    @property
    def longest_allowed(self) -> int:
        """Longest context that a user may request; with long rope it exceeds `longest`."""
        if self._has_longrope:
            return self.require("max_position_embeddings")
        if not self._written_length:
            return MOST
        return max(self.longest, self.number("model_max_length"))

    @property
    def _has_longrope(self) -> bool:
        return any(kind == "longrope" for kind, _ in self.ropes)

    @property
    def ropes(self) -> list[tuple[str, float | None]]:
        """Type and factor of each rope scaling."""
        return [(rope_type(rope), rope_factor(rope)) for rope in rope_settings(self.text)]

    def resolve_length(self, requested: int | None, any_length: bool = False) -> int:
        """The longest request in tokens.

        Raises:
            Refusal: When it is longer than the model allows, unless any length is allowed.
        """
        if requested is None:
            return self.longest
        if requested > self.longest_allowed and not any_length:
            raise rejected(
                f"User-specified max_model_len ({requested}) is greater than the derived "
                f"max_model_len ({self.longest_allowed})."
            )
        return requested


def _text(config: Config) -> Config:
    """The language model's part, also if only its class defaults give the number of heads."""
    text, part = text_config(config), config.get("text_config")
    if text is config and isinstance(part, Mapping):
        heads = class_default(str(part.get("model_type") or ""), "num_attention_heads")
        return part if heads else config
    return text
