"""What the layers of a GGUF model keep; `test_gguf.py` compares with the log of a real server."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import MIB
from moorage.memory.gguf import GgufMemory
from moorage.memory.gguf_header import GgufHeader
from moorage.memory.gguf_layers import Keeps, layers_of
from moorage.memory.need import CpuNeed
from moorage.spec.arguments import parse_words

ALL, WINDOW, STATE = Keeps.ALL, Keeps.WINDOW, Keeps.STATE
SLIDING = {"attention.sliding_window": 1024}


@pytest.mark.parametrize(
    ("architecture", "header", "kinds"),
    [
        ("gemma3", SLIDING, [WINDOW] * 5 + [ALL] + [WINDOW] * 2),
        ("gpt-oss", SLIDING, [WINDOW, ALL] * 4),
        ("olmo2", {}, [ALL] * 8),
        ("olmo2", SLIDING, ([WINDOW] * 3 + [ALL]) * 2),
        ("phi3", SLIDING, [ALL] * 8),
        ("gemma2", {}, [WINDOW, ALL] * 4),
        ("gemma3", {**SLIDING, "attention.sliding_window_pattern": 4}, ([WINDOW] * 3 + [ALL]) * 2),
        (
            "gemma3",
            {**SLIDING, "attention.sliding_window_pattern": [True, False]},
            [WINDOW] + [ALL] * 7,
        ),
        ("qwen3next", {}, ([STATE] * 3 + [ALL]) * 2),
        ("qwen35", {"full_attention_interval": 2}, [STATE, ALL] * 4),
    ],
)
def test_a_rule_says_what_each_layer_keeps(
    architecture: str, header: dict[str, Any], kinds: list[Keeps]
) -> None:
    found = layers_of(architecture, header, 8)
    assert (list(found.kinds), found.exact) == (kinds, True)


@pytest.mark.parametrize(
    "header", [SLIDING, {"ssm.state_size": 128}, {"attention.key_length_mla": 192}]
)
def test_without_a_rule_all_layers_count_with_all_tokens_and_that_is_not_exact(
    header: dict[str, Any],
) -> None:
    found = layers_of("of-tomorrow", header, 8)
    assert (set(found.kinds), found.exact) == ({ALL}, False)
    assert layers_of("llama", {}, 8).exact


NEXT = {
    "block_count": 12,
    "embedding_length": 64,
    "feed_forward_length": 128,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 16,
    "attention.value_length": 16,
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 32,
    "ssm.group_count": 2,
}


def test_a_state_takes_what_the_server_logs_whatever_the_context() -> None:
    """Build 11549 logs 1.12 MiB of keys and values of 3 layers, and 0.50 MiB of states of 9."""
    memory = GgufMemory(GgufHeader(NEXT, 1000, architecture="qwen3next"), parse_words(()))
    sizes = []
    for tokens in (1024, 2048):
        need = memory.cpu_need(tokens=tokens, concurrency=3)
        assert isinstance(need, CpuNeed)
        sizes.append(need.cache_bytes / MIB)
    assert sizes == pytest.approx([1.125 + 0.5, 2.25 + 0.5], abs=0.002)
