from __future__ import annotations

import pytest

from moorage.common.versions import at_least
from moorage.engines.vllm.arguments import gated_flags, mode_flags, shutdown_flags
from moorage.spec import Mode
from tests.builders import a_profile
from tests.engines.vllm.requests import a_request, line


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
        ("transcription", "0.32.0", ""),
        ("transcription", "0.9.2", "--task transcription"),
    ],
)
def test_the_mode_is_told_in_the_words_of_the_version(mode: str, version: str, words: str) -> None:
    assert line(mode_flags(a_profile(mode=Mode(mode)), version)) == words


LOG, DETAILS = "--disable-access-log-for-endpoints /metrics", "--enable-prompt-tokens-details"


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ("0.32.0", f"{LOG} {DETAILS}"),
        ("0.16.0", f"{LOG} {DETAILS}"),
        ("v0.16", f"{LOG} {DETAILS}"),
        ("0.16.0rc1", DETAILS),
        ("0.15.9", DETAILS),
        ("0.9.0.1", DETAILS),
        ("0.9.0", ""),
        ("nightly", f"{LOG} {DETAILS}"),
        ("", ""),
    ],
)
def test_a_flag_is_given_from_its_first_version_on(version: str, flags: str) -> None:
    assert line(tuple(gated_flags(a_request(version=version)))) == flags


@pytest.mark.parametrize(
    "version",
    [
        "0.16.0-custom",
        "0.16.0+cu129",
        "0.16.0.post1",
        "0.16.0.0",
        "0.16.1rc1",
        "0.100",
        "1",
        "main",
    ],
)
def test_a_build_of_a_version_is_that_version(version: str) -> None:
    assert at_least(version, "0.16.0")


@pytest.mark.parametrize(
    "version", ["0.16.0a1", "0.16.0-rc.1", "0.16.0.dev3+gabc", "0.16.0-beta2", "0.9", ""]
)
def test_what_comes_before_a_release_is_older(version: str) -> None:
    assert not at_least(version, "0.16.0")


@pytest.mark.parametrize(
    ("version", "seconds", "words"),
    [
        ("0.32.0", 30, ["--shutdown-timeout 30"]),
        ("0.18.0", 5, ["--shutdown-timeout 5"]),
        ("0.18.0rc1", 5, []),
        ("0.17.1", 30, []),
        ("", 30, []),
    ],
)
def test_a_version_that_knows_it_is_told_how_long_it_may_end_requests(
    version: str, seconds: int, words: list[str]
) -> None:
    request = a_request(version=version, stopping={"grace_seconds": seconds})
    assert [" ".join(flag.tokens) for flag in shutdown_flags(request)] == words
