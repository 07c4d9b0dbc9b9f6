from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.common.units import GIB, KIB, MIB
from moorage.memory.need import MemoryQuery
from moorage.memory.sizing import (
    COMMON_SIZES,
    REPORTED_MIB,
    Answer,
    Device,
    answer,
    find_device,
    smallest,
    token_bytes,
)
from tests.memory.models import needed, plain


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("24GiB", "", 24 * GIB),
        ("80 GiB", "", 80 * GIB),
        ("16000000000", "", 16_000_000_000),
        ("h100", "NVIDIA H100 80GB", 81_559 * MIB),
        ("H100-NVL", "NVIDIA H100 NVL", 95_830 * MIB),
        ("a100 80gb", "NVIDIA A100 80GB", 81_920 * MIB),
        ("4090", "NVIDIA GeForce RTX 4090", 24_564 * MIB),
        ("rtx 4090", "NVIDIA GeForce RTX 4090", 24_564 * MIB),
        ("mi300x", "AMD Instinct MI300X", 196_592 * MIB),
    ],
)
def test_an_accelerator_is_a_size_or_a_name(text: str, name: str, size: int) -> None:
    device = find_device(text)
    assert device
    assert (device.name, device.total) == (name, size)


@pytest.mark.parametrize("text", ["", "abacus", "1MiB", "h100 l4"])
def test_what_is_neither_is_not_guessed(text: str) -> None:
    assert find_device(text) is None


def test_every_name_finds_itself() -> None:
    for name in REPORTED_MIB:
        found = find_device(name)
        assert found
        assert found.name == name
    assert sorted(COMMON_SIZES) == list(COMMON_SIZES)


LONG = MemoryQuery(total=0, tokens=131072)


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("llama-3.1-8b", 128),
        ("qwen3-8b", 144),
        ("qwen3-30b-a3b", 96),
        ("deepseek-v3-bf16", 68.625),
        ("gemma-3-27b-text", 80),
        ("gpt-oss-20b-bf16", 24),
        ("qwen3-next-80b-a3b", 24),
        ("mistral-7b-v0.1", 0),
        ("bge-base-en", 0),
    ],
)
def test_a_token_takes_what_the_layers_that_keep_all_take(name: str, kib: float) -> None:
    # Recurrent states round the block, so a token of it is a little less than a whole number.
    assert token_bytes(needed(plain(name), tokens=500)) / KIB == pytest.approx(kib, rel=0.001)


@pytest.mark.parametrize(("gib", "ranks"), [(16, 4), (24, 2), (40, 1), (80, 1)])
def test_the_fewest_ranks_with_which_it_fits(gib: int, ranks: int) -> None:
    found = smallest(plain("llama-3.1-8b"), Device(total=gib * GIB), LONG, LONG.tokens)
    assert isinstance(found, Answer)
    assert found.need.tensor_parallel_size == ranks
    assert found.fits


def test_what_fits_with_no_number_of_ranks_is_shown_with_the_most() -> None:
    model = plain("llama-3.1-70b")
    rows = [smallest(model, Device(total=size), LONG, LONG.tokens) for size in COMMON_SIZES[:2]]
    answers = [found for found in rows if isinstance(found, Answer)]
    fits = [(answer.fits, answer.need.tensor_parallel_size) for answer in answers]
    assert fits == [(False, 16), (True, 16)]


def test_the_flags_are_those_that_were_counted_with() -> None:
    query = replace(LONG, tensor=2, pipeline=2)
    found = answer(plain("llama-3.1-8b"), Device(total=80 * GIB), query, LONG.tokens)
    assert isinstance(found, Answer)
    assert found.flags == (
        "--tensor-parallel-size 2",
        "--pipeline-parallel-size 2",
        "--max-model-len 131072",
        "--max-num-batched-tokens 8192",
        "--max-num-seqs 1024",
        f"--gpu-memory-utilization {found.utilization:g}",
    )
