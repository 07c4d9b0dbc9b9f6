from __future__ import annotations

import json

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, TensorHeader, WeightSummary
from moorage.models.weights import (
    BITS,
    header_end,
    join_headers,
    read_header,
    summarize,
)
from tests.hub.tiny import safetensors, with_header


def summary_of(content: bytes) -> WeightSummary:
    file = ModelFile(name="model.safetensors", size=len(content))
    return read_header(content[: header_end(content[:8], file)], file).summary


def one_tensor(dtype: object, shape: object, size: int, **changes: object) -> bytes:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size], **changes}
    return with_header(json.dumps({"t": entry}).encode(), b"\0" * size)


def test_a_header_tells_tensors_and_bytes_by_dtype() -> None:
    content = safetensors(
        {"a": ("BF16", [3, 5]), "b": ("F8_E4M3", [7]), "c": ("BF16", [])},
        metadata={"format": "pt"},
    )
    assert summary_of(content) == WeightSummary(
        family="safetensors", bytes=39, tensors=3, bytes_by_dtype={"BF16": 32, "F8_E4M3": 7}
    )


@pytest.mark.parametrize(("dtype", "bits"), BITS.items())
def test_every_dtype_has_its_width(dtype: str, bits: int) -> None:
    assert summary_of(one_tensor(dtype, [8, 3], 3 * bits)).bytes == 3 * bits


def test_a_dtype_of_the_future_is_counted_by_its_offsets() -> None:
    assert summary_of(one_tensor("F2_X", [16], 4)).bytes_by_dtype == {"F2_X": 4}


def test_shards_add_up() -> None:
    shards = [summary_of(safetensors({name: ("F16", [10])})) for name in "ab"]
    assert summarize("safetensors", shards) == WeightSummary(
        family="safetensors", bytes=40, tensors=2, bytes_by_dtype={"F16": 40}
    )


def test_a_format_without_headers_counts_its_files() -> None:
    parts = [WeightSummary(family="bin", bytes=100)] * 2
    assert summarize("bin", parts) == WeightSummary(family="bin", bytes=200)


@pytest.mark.parametrize(("announced", "size"), [(190, 190), (400, 200), (100, 200), (None, 200)])
def test_an_announced_size_is_believed_if_the_files_can_hold_it(
    announced: int | None, size: int
) -> None:
    parts = [WeightSummary(family="bin", bytes=100)] * 2
    assert summarize("bin", parts, announced).bytes == size


def test_what_has_headers_needs_no_announcement() -> None:
    shard = summary_of(safetensors({"a": ("F16", [10])}))
    assert summarize("safetensors", [shard], 19).bytes == 20


def test_the_headers_of_all_files_are_joined_by_name() -> None:
    files: dict[str, dict[str, tuple[str, list[int]]]] = {
        "m-1.safetensors": {"a": ("F16", [10, 2])},
        "m-2.safetensors": {"b": ("BF16", [])},
        "2_Dense/model.safetensors": {"a": ("F32", [4])},
    }
    parts = []
    for name, tensors in files.items():
        content = safetensors(tensors)
        file = ModelFile(name=name, size=len(content))
        parts.append(read_header(content[: header_end(content[:8], file)], file))
    headers = join_headers(parts)
    assert dict(headers) == {
        "a": TensorHeader(dtype="F16", shape=(10, 2)),
        "b": TensorHeader(dtype="BF16", shape=()),
        "2_Dense.a": TensorHeader(dtype="F32", shape=(4,)),
    }


def test_a_model_without_any_tensor_is_never_zero_bytes() -> None:
    with pytest.raises(Failure, match="hold no tensors") as caught:
        summarize("safetensors", [summary_of(with_header(b"{}"))])
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "too short"),
        (b"1234567", "too short"),
        (b"version https://git-lfs.github.com/spec/v1\noid ...", "Git LFS pointer"),
        ((10**9).to_bytes(8, "little") + b"{}", "would end at byte 1,000,000,008"),
        (with_header(b"not JSON"), "not JSON"),
        (with_header(b"\xff\xfe\x00"), "not JSON"),
        (with_header(b"[" * 100_000), "not JSON"),
        (with_header(b"[]"), "not a JSON object"),
        (with_header(b'{"t": 1}'), "does not describe tensor 't'"),
        (with_header(b'{"t": {"dtype": "F32"}}'), "does not describe tensor 't'"),
        (one_tensor("F32", [-1], 4), "does not describe tensor 't'"),
        (one_tensor("F32", "22", 4), "does not describe tensor 't'"),
        (one_tensor("F32", [True], 4), "does not describe tensor 't'"),
        (one_tensor(None, [1], 4), "cannot have 4 bytes"),
        (one_tensor("F32", [2], 4), "cannot have 4 bytes"),
        (one_tensor("F32", [1], 4, data_offsets=[4, 0]), "cannot have -4 bytes"),
        (one_tensor("F32", [1], 4)[:-1], "holds 3 bytes of tensors, its header says 4"),
        (one_tensor("F32", [1], 4) + b"\0", "holds 5 bytes of tensors, its header says 4"),
        (one_tensor("U8", [2], 4, data_offsets=[2, 4]), "overlap or leave a hole"),
    ],
)
def test_a_malformed_file_is_named_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(Failure) as caught:
        summary_of(content)
    pointer = "LFS" in why
    assert caught.value.cause is (Cause.SOURCE_INCOMPLETE if pointer else Cause.SOURCE_CORRUPT)
    assert caught.value.detail.startswith("model.safetensors is not a whole safetensors file")
    assert why in caught.value.detail
