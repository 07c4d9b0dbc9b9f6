from __future__ import annotations

import pytest

from moorage.engines.vllm.shutdown import shutdown_flags
from tests.engines.vllm.contexts import a_context


@pytest.mark.parametrize(
    ("version", "seconds", "words"),
    [
        ("0.32.0", 30, ["--shutdown-timeout 30"]),
        ("0.18.0", 5, ["--shutdown-timeout 5"]),
        ("0.18.0rc1", 5, []),
        ("0.17.1", 30, []),
        ("", 30, []),
        ("0.32.0", 0, []),
    ],
)
def test_a_version_that_knows_it_is_told_how_long_it_may_end_requests(
    version: str, seconds: int, words: list[str]
) -> None:
    context = a_context(version=version, shutdown_seconds=seconds)
    assert [" ".join(flag.tokens) for flag in shutdown_flags(context)] == words
