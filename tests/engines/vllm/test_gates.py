from __future__ import annotations

import pytest

from moorage.engines.vllm.gates import gated_flags
from moorage.engines.vllm.version import at_least
from tests.engines.vllm.contexts import a_context, line

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
    assert line(gated_flags(a_context(version=version))) == flags


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
