from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.memory import MemoryOptions
from moorage.memory.batch import on_accelerator, without_accelerator


@pytest.mark.parametrize(
    ("gib", "name", "options", "length", "cut", "tokens", "seqs"),
    [
        (24, "", {}, 8192, True, 2048, 256),
        (80, "NVIDIA H100 80GB HBM3", {}, 8192, True, 8192, 1024),
        (80, "NVIDIA A100-SXM4-80GB", {}, 8192, True, 2048, 256),
        (192, "", {}, 8192, True, 16384, 1024),
        (80, "", {"throughput": True}, 8192, True, 16384, 2048),
        (80, "", {"max_seqs": 4}, 8192, True, 8192, 4),
        (80, "", {"max_seqs": 4}, 1024, True, 4096, 4),
        (80, "", {"batched_tokens": 512}, 8192, True, 512, 512),
        (80, "", {"batched_tokens": 512, "max_seqs": 900}, 8192, True, 512, 900),
        (24, "", {}, 8192, False, 8192, 256),
        (24, "", {"max_seqs": 1}, 512, False, 512, 1),
        (24, "", {}, 2, True, 512, 256),
    ],
)
def test_the_batch_is_what_vllm_chooses(
    gib: int, name: str, options: dict[str, Any], length: int, cut: bool, tokens: int, seqs: int
) -> None:
    batch = on_accelerator(MemoryOptions(**options), gib * GIB, name, length, cut)
    assert (batch.tokens, batch.seqs) == (tokens, seqs)


def test_on_cpu_it_grows_with_the_ranks() -> None:
    batch = without_accelerator(MemoryOptions(), 2, 8192, True)
    assert (batch.tokens, batch.seqs) == (4096, 256)
