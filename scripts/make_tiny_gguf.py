"""Write a tiny model as one GGUF file that llama.cpp loads.

    python scripts/make_tiny_gguf.py MODEL_DIR OUT_FILE [--arch llama|qwen2|qwen3|gemma3]
        [--type f32|f16|q8_0] [--pooling mean|rank] [--set KEY=NUMBER]...

By default the file holds the model of `make_tiny_model.py` in MODEL_DIR, tensor by tensor, with the
same greedy text. `--set` changes numbers of its config.json, such as `hidden_size=128`; tensors of
another shape are then generated. `--pooling` makes an embedding model, or a reranker (qwen3).
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float32]
Named = tuple[str, Array]

TYPES = {
    "f32": gguf.GGMLQuantizationType.F32,
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
}
"""Storage types of matrices; vectors are always F32."""

LAYER = {
    "input_layernorm": ("attn_norm", "embd"),
    "self_attn.q_proj": ("attn_q", "q embd"),
    "self_attn.k_proj": ("attn_k", "kv embd"),
    "self_attn.v_proj": ("attn_v", "kv embd"),
    "self_attn.o_proj": ("attn_output", "embd q"),
    "post_attention_layernorm": ("ffn_norm", "embd"),
    "mlp.gate_proj": ("ffn_gate", "ff embd"),
    "mlp.up_proj": ("ffn_up", "ff embd"),
    "mlp.down_proj": ("ffn_down", "embd ff"),
}
"""Tensors of a layer, by their names in transformers: llama.cpp's name and the shape."""

LABELS = ["yes", "no"]
"""Labels of a reranker's head."""

CONTROL, NORMAL = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL


def main() -> int:
    args = parse_arguments()
    config = json.loads((args.model / "config.json").read_text())
    config |= {key: int(value) for key, value in (pair.split("=") for pair in args.set)}
    partial = args.out.with_name(args.out.name + ".partial")
    writer = gguf.GGUFWriter(partial, args.arch)
    write_sizes(writer, config)
    write_tokenizer(writer, args.model)
    if args.pooling:
        writer.add_pooling_type(gguf.PoolingType[args.pooling.upper()])
    if args.pooling == "rank":
        writer.add_classifier_output_labels(LABELS)
        head = np.random.default_rng(0).standard_normal((len(LABELS), config["hidden_size"]))
        write_tensor(writer, "cls.output.weight", head.astype(np.float32), TYPES[args.type])
    for name, tensor in tensors(args.model, args.arch, config):
        write_tensor(writer, name, tensor, TYPES[args.type])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(args.out)
    print(f"{args.out}: {args.arch}, {args.out.stat().st_size / 1e6:.2f} MB")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write a tiny model as one GGUF file.")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arch", choices=("llama", "qwen2", "qwen3", "gemma3"), default="llama")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--pooling", choices=("mean", "rank"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER")
    return parser.parse_args()


def write_sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if "sliding_window" in config:
        writer.add_sliding_window(config["sliding_window"])


def write_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda pair: pair[1])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([CONTROL if token in special else NORMAL for token, _ in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    ids = dict(vocabulary)
    writer.add_bos_token_id(ids[settings["bos_token"]])
    writer.add_eos_token_id(ids[settings["eos_token"]])
    writer.add_pad_token_id(ids[settings["pad_token"]])
    writer.add_add_bos_token(True)
    writer.add_chat_template(settings["chat_template"])


def tensors(folder: Path, arch: str, config: dict[str, Any]) -> Iterator[Named]:
    found, random = load_file(folder / "model.safetensors"), np.random.default_rng(0)
    sizes = named_sizes(config)

    def tensor(name: str, shape: str) -> Array:
        wanted = tuple(sizes[size] for size in shape.split())
        if name in found and found[name].shape == wanted:
            return found[name]
        return (0.2 * random.standard_normal(wanted)).astype(np.float32)

    yield "token_embd.weight", tensor("model.embed_tokens.weight", "vocab embd")
    for layer in range(config["num_hidden_layers"]):
        for name, (short, shape) in LAYER.items():
            weights = tensor(f"model.layers.{layer}.{name}.weight", shape)
            if arch == "llama" and short in ("attn_q", "attn_k"):
                weights = interleaved(weights, len(weights) // config["head_dim"])
            yield f"blk.{layer}.{short}.weight", weights
        yield from additional(arch, layer, sizes)
    yield "output_norm.weight", tensor("model.norm.weight", "embd")
    yield "output.weight", tensor("lm_head.weight", "vocab embd")


def named_sizes(config: dict[str, Any]) -> dict[str, int]:
    return {
        "vocab": config["vocab_size"],
        "embd": config["hidden_size"],
        "ff": config["intermediate_size"],
        "head": config["head_dim"],
        "q": config["num_attention_heads"] * config["head_dim"],
        "kv": config["num_key_value_heads"] * config["head_dim"],
    }


def interleaved(tensor: Array, heads: int) -> Array:
    """The rows in the order of llama.cpp's rotation: pairs side by side, not halves."""
    rows, columns = tensor.shape
    halves = tensor.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def additional(arch: str, layer: int, sizes: dict[str, int]) -> Iterator[Named]:
    """Tensors of an architecture in addition to Llama's."""
    if arch in ("qwen3", "gemma3"):
        for name in ("attn_q_norm", "attn_k_norm"):
            yield f"blk.{layer}.{name}.weight", np.ones(sizes["head"], np.float32)
    if arch == "gemma3":
        for name in ("post_attention_norm", "post_ffw_norm"):
            yield f"blk.{layer}.{name}.weight", np.ones(sizes["embd"], np.float32)
    if arch == "qwen2":
        for name, size in (("attn_q", "q"), ("attn_k", "kv"), ("attn_v", "kv")):
            yield f"blk.{layer}.{name}.bias", np.zeros(sizes[size], np.float32)


def write_tensor(
    writer: gguf.GGUFWriter, name: str, tensor: Array, kind: gguf.GGMLQuantizationType
) -> None:
    if tensor.ndim < 2:
        kind = TYPES["f32"]
    writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)


if __name__ == "__main__":
    sys.exit(main())
