from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.schema_store import SchemaStore
from moorage.common.failures import Failure
from moorage.engines.schema.keywords import keywords
from moorage.spec.tokenize import user_tokens

SCHEMA = SchemaStore(Path("/nowhere")).of_version("0.32.0")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("--max-model-len 8k", {"max_model_len": 8000}),
        ("--max_model_len=8192", {"max_model_len": 8192}),
        (
            "-tp 2 --pipeline-parallel-size=2",
            {"tensor_parallel_size": 2, "pipeline_parallel_size": 2},
        ),
        ("--gpu-memory-utilization 0.5", {"gpu_memory_utilization": 0.5}),
        ("--enforce-eager", {"enforce_eager": True}),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("--dtype float32 --dtype float16", {"dtype": "float16"}),
        (
            '--speculative-config {"method": "ngram", "num_speculative_tokens": 2}',
            {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2}},
        ),
        ("--attention-config.backend FLASH", {"attention_config": {"backend": "FLASH"}}),
        ("--additional-config None", {"additional_config": None}),
        ("--allowed-media-domains a b", {"allowed_media_domains": ["a", "b"]}),
    ],
)
def test_words_become_what_vllm_would_make_of_them(line: str, expected: dict[str, Any]) -> None:
    assert SCHEMA
    assert keywords(user_tokens([line]), SCHEMA) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--max-model-lenght 8", "does not know it; write options in full"),
        ("--max-num 8", "write options in full"),
        ("--max-num-seqs", "its value is missing"),
        ("--max-num-seqs x", "'x' is not a whole number"),
        ("--attention-config.backend", "its value is missing"),
    ],
)
def test_what_is_no_argument_is_refused(line: str, why: str) -> None:
    assert SCHEMA
    with pytest.raises(Failure, match=why):
        keywords(user_tokens([line]), SCHEMA)
