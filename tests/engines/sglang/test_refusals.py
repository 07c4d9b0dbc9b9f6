"""What SGLang does not start, and a plan refuses before it is tried."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from tests.engines.sglang.shapes import with_sizes


@pytest.mark.parametrize(
    ("args", "hosts", "speculative"),
    [
        ("", 2, {"method": "mtp", "tokens": 3}),
        ("", 2, {"method": "ngram", "tokens": 8}),
        ("--tensor-parallel-size 2 --pipeline-parallel-size 2", 1, {"method": "mtp", "tokens": 3}),
        ("--pipeline-parallel-size 4 --speculative-algorithm EAGLE", 1, None),
    ],
)
def test_pipeline_stages_do_not_draft(
    args: str, hosts: int, speculative: dict[str, Any] | None
) -> None:
    wish = {"speculative": speculative} if speculative else {}

    with pytest.raises(Failure, match=r"does not draft with \d pipeline stages") as refused:
        with_sizes(args, hosts, 4, wish)

    assert refused.value.cause == Cause.BAD_SPEC
    ranks = 4 * hosts
    assert f"`--tensor-parallel-size {ranks}`" in (refused.value.suggestion or "")
    advised = with_sizes(f"--tensor-parallel-size {ranks}", hosts, 4, wish)
    assert len(advised) == hosts


@pytest.mark.parametrize(
    "adapters",
    [
        {"lora": [{"name": "poet", "source": "file:///adapters/poet", "rank": 24}]},
        {"lora_updates": {"max": 2, "rank": 16}},
    ],
    ids=str,
)
def test_adapters_do_not_go_with_a_draft_model(adapters: dict[str, Any]) -> None:
    draft = {"method": "draft_model", "tokens": 4, "model": "file:///models/draft"}

    with pytest.raises(Failure, match=r"adapters with `speculative\.method: draft") as no:
        with_sizes("", 1, 1, {**adapters, "speculative": draft})

    assert no.value.cause == Cause.BAD_SPEC
    assert with_sizes("", 1, 1, {**adapters, "speculative": {"method": "mtp", "tokens": 3}})
