from __future__ import annotations

import pytest

from moorage.spec.image_reference import parse_reference, repository

DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("text", "registry", "path", "tag", "digest"),
    [
        ("ubuntu", "", "ubuntu", "", ""),
        ("ubuntu:24.04", "", "ubuntu", "24.04", ""),
        ("vllm/vllm-openai:v0.32.0", "", "vllm/vllm-openai", "v0.32.0", ""),
        ("host:5000/img", "host:5000", "img", "", ""),
        ("host:5000/team/img:v1", "host:5000", "team/img", "v1", ""),
        ("localhost/img", "localhost", "img", "", ""),
        ("quay.io/ascend/vllm-ascend:v0.23.0", "quay.io", "ascend/vllm-ascend", "v0.23.0", ""),
        (f"vllm/vllm-openai@{DIGEST}", "", "vllm/vllm-openai", "", DIGEST),
        (f"host:5000/img:v1@{DIGEST}", "host:5000", "img", "v1", DIGEST),
        ("[::1]:5000/img:v1", "[::1]:5000", "img", "v1", ""),
    ],
)
def test_a_reference_is_parsed_and_written_as_it_was(
    text: str, registry: str, path: str, tag: str, digest: str
) -> None:
    parsed = parse_reference(text)
    assert (parsed.registry, parsed.path, parsed.tag, parsed.digest) == (
        registry,
        path,
        tag,
        digest,
    )
    assert str(parsed) == text
    assert repository(text) == (f"{registry}/{path}" if registry else path)
    assert parsed.wanted == (digest or tag or "latest")
