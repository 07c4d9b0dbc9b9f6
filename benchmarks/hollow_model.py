"""Folders of models with real shapes and weights of zeros that take no space on disk.

Configuration and shapes are from the conformance data, the tokenizer from the tiny model. An
engine loads them like the real models, and allocates the same memory.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from scripts.make_tiny_model import SEQUENCES, SPECIAL_TOKENS, tokenizer_config, train_tokenizer
from tests.hub.tiny import with_header

SHAPES = Path(__file__).parents[1] / "tests/conformance/data/memory"
BYTES = {"F8_E4M3": 1, "BF16": 2, "F16": 2, "F32": 4}


def write_hollow_model(model: str, folder: Path) -> None:
    """Write the folder of a model of the conformance data, with a tokenizer.

    Args:
        model: Its name in the conformance data, such as `llama-3.1-8b`.
        folder: The folder to create.
    """
    write_weights(model, folder, ["model.safetensors"])
    write_tokenizer(folder)


def write_weights(model: str, folder: Path, files: Sequence[str]) -> None:
    """Write a model's configuration, and its weights in as many files."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SHAPES / model / "config.json", folder / "config.json")
    tensors = list(_tensors(SHAPES / model).items())
    each = -(-len(tensors) // len(files))
    for number, name in enumerate(files):
        write_sparse(folder / name, dict(tensors[number * each : (number + 1) * each]))


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer whose first token is plain text: zero weights always choose that token."""
    specials = tuple(SPECIAL_TOKENS["llama"].values())
    tokenizer = json.loads(train_tokenizer(specials, SEQUENCES["llama"]).to_str())
    tokenizer["added_tokens"][0]["special"] = False
    config = tokenizer_config("llama")
    del config["pad_token"], config["model_max_length"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def write_sparse(path: Path, tensors: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a sparse weight file of full length: a header, then a hole.

    Args:
        path: The file.
        tensors: `{name: {"dtype": ..., "shape": [...]}}`.
    """
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + prod(tensor["shape"]) * BYTES[tensor["dtype"]]
        header[name] = {**tensor, "data_offsets": [begin, end]}
    with path.open("wb") as file:
        file.truncate(file.write(with_header(json.dumps(header).encode())) + end)


def _tensors(folder: Path) -> dict[str, dict[str, Any]]:
    plain = folder / "tensors.json"
    text = (
        plain.read_bytes()
        if plain.exists()
        else gzip.decompress((folder / "tensors.json.gz").read_bytes())
    )
    return dict(json.loads(text))
