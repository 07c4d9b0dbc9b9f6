from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.gguf import Metadata
from moorage.models.gguf_config import (
    GGUF,
    GGUF_PARTS,
    gguf_adapter_config,
    gguf_config,
    has_template,
)

LLAMA: Metadata = {
    "general.architecture": "llama",
    "general.name": "",
    "llama.context_length": 131072,
    "llama.embedding_length": 4096,
    "llama.block_count": 32,
    "llama.feed_forward_length": [14336, 14336],
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": [8, 0, 8],
    "llama.rope.freq_base": 500000.0,
    "tokenizer.ggml.tokens": 128256,
    "tokenizer.chat_template": "",
}


def test_a_header_becomes_a_configuration() -> None:
    config = dict(gguf_config(LLAMA, {"F32": 10, "Q4_K": 4000, "Q6_K": 500}, {"blk.0": 7}))
    own = config.pop(GGUF)
    assert config.pop(GGUF_PARTS) == {"blk.0": 7}
    assert config == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "max_position_embeddings": 131072,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "quantization_config": {"quant_method": "Q4_K"},
        "num_labels": 1,
    }
    assert own["attention.head_count_kv"] == [8, 0, 8]
    assert has_template(LLAMA)
    assert not has_template({})


@pytest.mark.parametrize(
    ("architecture", "pooling", "name"),
    [
        ("llama", None, "LlamaForCausalLM"),
        ("qwen3", 3, "Qwen3Model"),
        ("qwen3", 4, "Qwen3ForSequenceClassification"),
        ("nomic-bert", None, "NomicBertModel"),
        ("bert", 1, "BertModel"),
        ("bert", 4, "BertForSequenceClassification"),
        ("qwen2", 0, "Qwen2ForCausalLM"),
    ],
)
def test_architecture_and_pooling_say_what_it_is_for(
    architecture: str, pooling: int | None, name: str
) -> None:
    metadata: Metadata = {"general.architecture": architecture}
    if pooling is not None:
        metadata[f"{architecture}.pooling_type"] = pooling
    assert gguf_config(metadata, {"F16": 1})["architectures"] == [name]


LORA: Metadata = {
    "general.architecture": "llama",
    "general.type": "adapter",
    "adapter.type": "lora",
    "adapter.lora.alpha": 16.0,
}


def test_the_header_of_an_adapter_tells_what_it_was_made_for() -> None:
    assert gguf_adapter_config(LORA) == {"model_type": "llama"}


@pytest.mark.parametrize(
    ("header", "kind"), [(LLAMA, "'model'"), ({**LORA, "adapter.type": "vector"}, "'adapter'")]
)
def test_what_is_no_lora_is_no_adapter(header: Metadata, kind: str) -> None:
    with pytest.raises(Failure, match=f"general.type {kind}; only a LoRA adapter") as caught:
        gguf_adapter_config(header)
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE
