"""Make a tiny Whisper with random weights that real engines load, and that transcribes audio.

    python scripts/make_tiny_whisper.py OUT_DIR [--seed 0]

Its transcripts are tokens of the tiny llama's tokenizer in a random order.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from make_tiny_model import (
    HEAD_DIM,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    Named,
    Random,
    linear,
    norm,
    save_weights,
    train_tokenizer,
    unreadable_ids,
    weights,
    write_json,
)
from tokenizers import Tokenizer

END, START, NO_TIMES = "<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"
SPECIAL_TOKENS = (
    END,
    START,
    "<|en|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startofprev|>",
    NO_TIMES,
)
"""Special tokens. A prompt of Whisper is START, a language, a task, and an optional NO_TIMES."""

MEL_BINS = 80
FRAMES = 1500
"""Frames of the encoder for 30 s; shorter audio is padded."""

LENGTH = 448
"""Most tokens of a transcript with its prompt."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a tiny Whisper with random weights.")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out_dir.mkdir(parents=True)
    write_model(args.out_dir, args.seed)


def write_model(folder: Path, seed: int) -> None:
    tokenizer = train_tokenizer(SPECIAL_TOKENS, ("$A", "$A $B"))
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config())
    write_json(folder / "preprocessor_config.json", sound_config())
    write_json(folder / "config.json", model_config(tokenizer))
    write_json(folder / "generation_config.json", token_ids(tokenizer))
    save_weights(folder, dict(tensors(np.random.default_rng(seed), tokenizer)))


def tokenizer_config() -> dict[str, Any]:
    ends = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), END)
    return {
        "tokenizer_class": "WhisperTokenizer",
        "processor_class": "WhisperProcessor",
        "model_max_length": LENGTH,
        **ends,
    }


def sound_config() -> dict[str, Any]:
    """Settings of the feature extractor, the same for every Whisper."""
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": MEL_BINS,
        "sampling_rate": 16_000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 30,
        "padding_value": 0.0,
    }


def model_config(tokenizer: Tokenizer) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in {
            "layers": LAYERS,
            "attention_heads": HIDDEN // HEAD_DIM,
            "ffn_dim": INTERMEDIATE,
        }.items()
    }
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "torch_dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": tokenizer.get_vocab_size(),
        "d_model": HIDDEN,
        "num_mel_bins": MEL_BINS,
        "max_source_positions": FRAMES,
        "max_target_positions": LENGTH,
        "activation_function": "gelu",
        **sides,
        **token_ids(tokenizer),
    }


def token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    names = {"bos": END, "eos": END, "pad": END, "decoder_start": START}
    ids = tokenizer.get_vocab()
    return {f"{name}_token_id": ids[text] for name, text in names.items()}


def tensors(random: Random, tokenizer: Tokenizer) -> Iterator[Named]:
    yield "model.encoder.conv1.weight", stack(random, HIDDEN, MEL_BINS)
    yield "model.encoder.conv1.bias", np.zeros(HIDDEN, np.float32)
    yield "model.encoder.conv2.weight", stack(random, HIDDEN, HIDDEN)
    yield "model.encoder.conv2.bias", np.zeros(HIDDEN, np.float32)
    yield "model.encoder.embed_positions.weight", weights(random, FRAMES, HIDDEN)
    # The decoder's head shares these weights; a zero logit is never the largest.
    words = weights(random, tokenizer.get_vocab_size(), HIDDEN)
    words[unreadable_ids(tokenizer)] = 0
    yield "model.decoder.embed_tokens.weight", words
    yield "model.decoder.embed_positions.weight", weights(random, LENGTH, HIDDEN)
    for layer in range(LAYERS):
        yield from block(random, f"model.encoder.layers.{layer}", ("self_attn",))
        yield from block(random, f"model.decoder.layers.{layer}", ("self_attn", "encoder_attn"))
    yield from norm("model.encoder.layer_norm")
    yield from norm("model.decoder.layer_norm")


def block(random: Random, at: str, attentions: tuple[str, ...]) -> Iterator[Named]:
    for attention in attentions:
        for name in ("q_proj", "v_proj", "out_proj"):
            yield from linear(random, f"{at}.{attention}.{name}", HIDDEN, HIDDEN)
        yield f"{at}.{attention}.k_proj.weight", weights(random, HIDDEN, HIDDEN)
        yield from norm(f"{at}.{attention}_layer_norm")
    yield from linear(random, f"{at}.fc1", INTERMEDIATE, HIDDEN)
    yield from linear(random, f"{at}.fc2", HIDDEN, INTERMEDIATE)
    yield from norm(f"{at}.final_layer_norm")


def stack(random: Random, rows: int, columns: int) -> Any:
    """Weights of a convolution over three frames."""
    return np.stack([weights(random, rows, columns) for _ in range(3)], axis=2)


if __name__ == "__main__":
    main()
