from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.failures import Cause, Failure
from moorage.models.gguf import BLOCKS, UNKNOWN, NeedsMore, read_gguf
from moorage.models.source import ModelFile, WeightSummary
from scripts.make_demo_gguf import header
from tests.hub.tiny import gguf

F32, Q4_0, Q4_K, Q6_K = 0, 2, 12, 14


def read(content: bytes, upto: int | None = None) -> WeightSummary:
    return read_gguf(content[:upto], ModelFile(name="m.gguf", size=len(content))).summary


def test_a_header_tells_tensors_and_bytes_by_type() -> None:
    tensors = {"a": (Q4_K, [512, 3]), "b": (Q6_K, [256]), "c": (F32, [5]), "d": (Q4_K, [256])}
    assert read(gguf(tensors, 2000)) == WeightSummary(
        family="gguf",
        bytes=7 * 144 + 210 + 20,
        tensors=4,
        bytes_by_dtype={"Q4_K": 7 * 144, "Q6_K": 210, "F32": 20},
    )


def test_a_header_tells_the_bytes_of_each_layer() -> None:
    names = ("token_embd.weight", "output.weight", "output_norm.weight", "blk.0.attn_q.weight")
    tensors = {name: (F32, [5]) for name in (*names, "blk.0.ffn_up.weight", "blk.12.x", "blk.1x.y")}
    content = gguf(tensors, 200)
    found = read_gguf(content, ModelFile(name="m.gguf", size=len(content))).parts
    assert found == {"token_embd": 20, "output": 20, "blk.0": 40, "blk.12": 20, "": 40}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (name, _, _) in BLOCKS.items()])
def test_every_type_has_its_block(kind: int, name: str) -> None:
    _, block, size = BLOCKS[kind]
    assert read(gguf({"t": (kind, [block, 3])}, 3 * size)).bytes_by_dtype == {name: 3 * size}


@pytest.mark.parametrize(("kind", "last"), [(99, 100), (F32, 20)])
def test_a_tensor_of_a_newer_type_takes_the_bytes_up_to_the_next(kind: int, last: int) -> None:
    tensors = {"a": (99, [32], 64), "b": (F32, [16], 0), "c": (kind, [5], 200)}
    content = header({"general.architecture": "llama"}, tensors) + bytes(300)
    found = read(content).bytes_by_dtype
    newer = 136 + last * (kind == 99)
    assert found == {UNKNOWN: newer, "F32": 64 + last * (kind == F32)}


@given(st.integers(0, 200))
def test_a_header_that_goes_on_asks_for_more(upto: int) -> None:
    content = gguf({"a": (Q4_0, [32])}, 500)
    with pytest.raises(NeedsMore):
        read(content, upto)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"GGML" + b"\0" * 100, "does not start like one"),
        (b"GGUF" + b"\1" * 100, "does not start like one"),
        (gguf({"a": (Q4_0, [32])}, 0), "0 bytes cannot hold 18 of tensors"),
        (gguf({"a": (99, [32]), "b": (F32, [1])}, 0), "0 bytes cannot hold"),
        (gguf({"a": (Q4_0, [1] * 9)}, 500), "9 dimensions"),
        (gguf({}, 0)[:60], "beyond its end"),
        (gguf({"a": (F32, [1 << 40])}, 100), "cannot hold 4,398,046,511,104"),
    ],
)
def test_what_is_no_whole_gguf_file_is_an_error_never_zero_bytes(content: bytes, why: str) -> None:
    with pytest.raises(Failure, match=why) as caught:
        read(content)
    assert caught.value.cause is Cause.SOURCE_CORRUPT
    assert caught.value.detail.startswith("m.gguf is not a whole GGUF file")
