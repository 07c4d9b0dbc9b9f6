"""Whatever lies in a model's folder is refused or served soon, in little memory and in words."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.adapters.sources import hostile
from tests.adapters.sources.hostile import (
    DEEP,
    DEEP_OBJECT,
    TERABYTE,
    Make,
    config,
    fifo,
    folder,
    gguf,
    gguf_array,
    gguf_start,
    header,
    link,
    many_tensors,
    named,
    weights,
)
from tests.hub.tiny import gguf as sane_gguf
from tests.hub.tiny import with_header

INDEX = "model.safetensors.index.json"
BIG = 10**100

CORRUPT: list[tuple[str, Make]] = [
    ("config.json is nested", folder(config__json=DEEP)),
    ("config.json is nested", folder(config__json=DEEP_OBJECT)),
    ("config.json is not UTF-8", folder(config__json=b"\xff\xfe")),
    ("config.json is a FIFO", fifo("config.json")),
    ("config.json is a link that leads in a circle", link("config.json", "config.json")),
    ("modules.json is nested", folder(modules__json=DEEP)),
    ("modules.json is a socket", hostile.bound_socket("modules.json")),
    ("tokenizer_config.json is nested", folder(tokenizer_config__json=DEEP_OBJECT)),
    ("tokenizer_config.json is a FIFO", fifo("tokenizer_config.json")),
    ("tokenizer_config.json is a device", link("tokenizer_config.json", "/dev/zero")),
    ("hf_quant_config.json is nested", folder(hf_quant_config__json=DEEP_OBJECT)),
    ("generation_config.json is a FIFO", fifo("generation_config.json")),
    (f"{INDEX} is not an index", folder(**{INDEX: DEEP})),
    (f"{INDEX} is a FIFO", fifo(INDEX)),
    (
        "has a number that is too large, 1e999",
        folder(**{INDEX: b'{"weight_map": {}, "metadata": {"total_size": 1e999}}'}),
    ),
    ("model-1-of-2.safetensors is a FIFO", fifo("model-1-of-2.safetensors")),
    ("num_hidden_layers is 1000000, more than 1,000", config(num_hidden_layers=10**6)),
    ("has a number of 301 digits", config(num_hidden_layers=10**300)),
    ("num_hidden_layers is inf", config(num_hidden_layers=float("inf"))),
    ("hidden_size is nan", config(hidden_size=float("nan"))),
    ("hidden_size is 1000000000000", config(hidden_size=BIG)),
    ("num_hidden_layers is '2', and no number", config(num_hidden_layers="2")),
    ("text_config.vocab_size is -1", config(text_config={"vocab_size": -1})),
    ("num_labels is", config(num_labels=10**9)),
    ("first_k_dense_replace is", config(first_k_dense_replace=-(10**9))),
    ("attention_types is", config(attention_types=[[["global"], 10**9]])),
    ("layer_types has 20,000 items", config(layer_types=[None] * 20_000)),
    ("config.json has more than 250,000 values", config(layer_types=[None] * 10**6)),
    ("rope_scaling.factor is", config(rope_scaling={"rope_type": "linear", "factor": 1e300})),
    ("model_type is '\\x1b[2J'", config(model_type="\x1b[2J")),
    ("half of a surrogate pair", config(model_type="\ud800")),
    ("the file name 'a\\udcff.txt' is not UTF-8", named(b"a\xff.txt")),
    ("the file name 'a\\nb' is not UTF-8", named(b"a\nb")),
    ("more than 10,000 files", hostile.many_files),
    ("more than 10,000 files", hostile.many_folders),
    ("more than 32 deep", hostile.deep_folders),
    ("would end at byte 4,611,", weights((1 << 62).to_bytes(8, "little") + b"{}")),
    ("would end at byte 1,000,", weights((10**9).to_bytes(8, "little") + b"{}", TERABYTE)),
    ("its header is not JSON", weights((31 << 20).to_bytes(8, "little") + b"{}", TERABYTE)),
    ("its header is not JSON", weights(with_header(DEEP))),
    ("does not describe tensor 't'", weights(header(shape=[BIG] * 3))),
    ("does not describe tensor 't'", weights(header(shape=[1 << 62] * 100_000))),
    ("cannot have 4 bytes", weights(header(shape=[1 << 62] * 30))),
    ("cannot have 4 bytes", weights(header(dtype=json.loads("[" * 50 + "]" * 50)))),
    ("tensors, more than 150,000", weights(lambda: many_tensors(250_000))),
    ("would end at byte 1", weights(lambda: many_tensors(1_500_000))),
    ("the headers of the weights exceed", hostile.many_headers),
    ("1,152,921,504,606,846,976 tensors", gguf(gguf_start(1 << 60, 0), TERABYTE)),
    ("1,152,921,504,606,846,976 entries", gguf(gguf_start(0, 1 << 60), TERABYTE)),
    ("beyond its end", gguf(gguf_start(0, 1, struct.pack("<Q", 1 << 63)), TERABYTE)),
    ("headers of the weights exceed", gguf(gguf_start(0, 1, struct.pack("<Q", 1 << 39)), TERABYTE)),
    ("nested more than 4 deep", gguf(gguf_array(*[(9, 1)] * 100_000), TERABYTE)),
    ("values in its arrays", gguf(gguf_array((9, TERABYTE)), 4 * TERABYTE)),
    ("values in its arrays", gguf(gguf_array((8, TERABYTE)), 4 * TERABYTE)),
]


@pytest.mark.parametrize(("words", "make"), CORRUPT)
def test_what_no_model_has_is_corrupt_soon_and_in_words(
    tmp_path: Path, words: str, make: Make
) -> None:
    make(tmp_path)
    found = hostile.outcome(tmp_path)
    assert (found["cause"], words in found["detail"]) == ("source-corrupt", True), found["detail"]
    assert found["detail"].isprintable()
    assert len(found["detail"]) < 1000
    assert found["cpu"] < hostile.CPU_SECONDS
    assert found["memory"] < hostile.MEMORY_MIB


SANE: dict[str, Make] = {
    "700 files, 90,000 tensors": hostile.large_model,
    "200,000 words": gguf(sane_gguf({"a": (2, [32, 10])}, 1000, words=200_000)),
    "1,000 layers": config(num_hidden_layers=1000, num_attention_heads=8),
    "infinity": config(time_step_limit=[0.0, float("inf")]),
    "no limit": folder(tokenizer_config__json=json.dumps({"model_max_length": int(1e30)}).encode()),
    "added tokens": folder(
        tokenizer_config__json=json.dumps(
            {str(i): {"content": f"<{i}>", "lstrip": False, "special": True} for i in range(70_000)}
        ).encode()
    ),
}


@pytest.mark.parametrize("make", SANE.values(), ids=SANE)
def test_the_largest_models_are_still_served(tmp_path: Path, make: Make) -> None:
    make(tmp_path)
    found = hostile.outcome(tmp_path)
    assert (found["cause"], found["detail"]) == ("", "")
    assert found["memory"] < hostile.MEMORY_MIB
