from __future__ import annotations

import pytest

from moorage.engines.vllm.claimed import mode_flags
from moorage.spec import Mode
from tests.builders import a_profile
from tests.engines.vllm.contexts import line


@pytest.mark.parametrize(
    ("mode", "version", "words"),
    [
        ("completion", "0.10.0", ""),
        ("image-generation", "0.10.0", ""),
        ("embedding", "0.32.0", "--runner pooling"),
        ("embedding", "", "--runner pooling"),
        ("embedding", "0.10.1", "--runner pooling"),
        ("embedding", "0.10.0", "--task embed"),
        ("reranking", "0.9.2", "--task score"),
        ("classification", "0.9.2", "--task classify"),
    ],
)
def test_the_mode_is_told_in_the_words_of_the_version(mode: str, version: str, words: str) -> None:
    assert line(mode_flags(a_profile(mode=Mode(mode)), version)) == words
