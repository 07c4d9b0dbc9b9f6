"""What the layers of a GGUF model keep of the context in llama.cpp.

Source: `llama-kv-cache-iswa.cpp` and `llama-memory-recurrent.cpp`, and of the periods the
hyperparameters of each architecture in `src/models/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

PERIODS = {
    **dict.fromkeys(("gemma2", "gpt-oss"), 2),
    **dict.fromkeys(("cohere2", "llama4", "olmo2"), 4),
    "gemma3": 6,
    # llama.cpp does not use the window that its headers name.
    "phi3": 1,
}
"""Architectures of which every n-th layer keeps the whole context, and the others a window."""

WINDOWS = {"gemma2": 4096, "llama4": 8192}
"""Windows where the header names none."""

STATE_PERIODS = dict.fromkeys(("qwen35", "qwen35moe", "qwen3next"), 4)
"""Architectures of which every n-th layer keeps the whole context, and the others a state."""

WITHOUT_RULE = (
    *("attention.sliding_window", "attention.key_length_mla", "attention.indexer.key_length"),
    *("ssm.state_size", "shortconv.l_cache"),
)
"""Entries of headers whose layers keep less, or more, than keys and values of all tokens."""

PADDING = 256
"""The cells of a window are rounded up to a multiple of this many tokens."""

STATE_ELEMENT = 4
"""Bytes of an element of a recurrent state."""


class Keeps(StrEnum):
    """What a layer keeps."""

    ALL = "all"
    WINDOW = "window"
    STATE = "state"


@dataclass(frozen=True)
class Layers:
    """What each layer keeps.

    Attributes:
        window: Tokens of the window; 0 = no layer has one.
        state_bytes: Bytes of the state of one layer for one slot.
        exact: Whether a rule for the architecture says so.
        whole: Whether windows take as much as the whole context (`--swa-full`).
    """

    kinds: tuple[Keeps, ...]
    window: int = 0
    state_bytes: int = 0
    exact: bool = True
    whole: bool = False

    def windowed(self, length: int, batch: int) -> int:
        """Tokens of a slot that a layer with a window keeps; 0 = no layer has one."""
        if not self.window:
            return 0
        padded = -(-(self.window + batch) // PADDING) * PADDING
        return length if self.whole else min(length, padded)


def layers_of(architecture: str, sizes: Mapping[str, Any], count: int) -> Layers:
    """The layers of a model with this header, whose keys are without the architecture's prefix."""
    window = _number(sizes, "attention.sliding_window") or WINDOWS.get(architecture, 0)
    if architecture in PERIODS and window:
        period = sizes.get("attention.sliding_window_pattern", PERIODS[architecture])
        kinds = _kinds(period, count, Keeps.WINDOW)
        return Layers(kinds, window if Keeps.WINDOW in kinds else 0)
    if architecture in STATE_PERIODS:
        period = _number(sizes, "full_attention_interval") or STATE_PERIODS[architecture]
        return Layers(_kinds(period, count, Keeps.STATE), state_bytes=_state_bytes(sizes))
    exact = not any(sizes.get(key) for key in WITHOUT_RULE)
    return Layers((Keeps.ALL,) * count, exact=exact)


def _kinds(period: Any, count: int, other: Keeps) -> tuple[Keeps, ...]:
    """The kinds by a period, or by a list that says of each layer whether it is of the others."""
    if isinstance(period, list):
        chosen = [*map(bool, period), *[False] * count]
        return tuple(other if one else Keeps.ALL for one in chosen[:count])
    if type(period) is not int or period < 1:
        return (Keeps.ALL,) * count
    return tuple(Keeps.ALL if (layer + 1) % period == 0 else other for layer in range(count))


def _state_bytes(sizes: Mapping[str, Any]) -> int:
    """Bytes of the convolution's last inputs, and of the state, in one layer for one slot."""
    inner, state = _number(sizes, "ssm.inner_size"), _number(sizes, "ssm.state_size")
    kernel, groups = _number(sizes, "ssm.conv_kernel"), _number(sizes, "ssm.group_count")
    inputs = max(0, kernel - 1) * (inner + 2 * groups * state)
    return (inputs + state * inner) * STATE_ELEMENT


def _number(sizes: Mapping[str, Any], key: str) -> int:
    value = sizes.get(key)
    return value if type(value) is int and value > 0 else 0
