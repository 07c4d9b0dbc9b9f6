from __future__ import annotations

import pytest

from moorage.images.reference import Registries, overridden, parse_reference, repository

DIGEST = f"sha256:{'0' * 64}"
MIRROR, SPARE = "mirror.example.net", "registry.example.org"


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


@pytest.mark.parametrize(
    ("image", "default", "fallback", "places"),
    [
        ("a/b:1", "", "", ["a/b:1"]),
        ("a/b:1", MIRROR, "", [f"{MIRROR}/a/b:1"]),
        ("a/b:1", f"{MIRROR}/hub/", "", [f"{MIRROR}/hub/a/b:1"]),
        ("a/b:1", MIRROR, SPARE, [f"{MIRROR}/a/b:1", f"{SPARE}/a/b:1"]),
        ("a/b:1", "", SPARE, ["a/b:1", f"{SPARE}/a/b:1"]),
        ("a/b:1", MIRROR, MIRROR, [f"{MIRROR}/a/b:1"]),
        (f"a/b@{DIGEST}", MIRROR, "", [f"{MIRROR}/a/b@{DIGEST}"]),
        ("ubuntu", "host:5000", "", ["host:5000/ubuntu"]),
        ("docker.io/a/b:1", MIRROR, SPARE, ["docker.io/a/b:1"]),
        ("host:5000/img", MIRROR, SPARE, ["host:5000/img"]),
        ("localhost/img", MIRROR, SPARE, ["localhost/img"]),
    ],
)
def test_an_image_without_a_registry_is_looked_for_in_the_configured_ones(
    image: str, default: str, fallback: str, places: list[str]
) -> None:
    assert list(Registries(default=default, fallback=fallback).places(image)) == places


@pytest.mark.parametrize(
    ("image", "default", "fallback", "place"),
    [
        ("gpustack/runner:x", MIRROR, SPARE, f"{MIRROR}/gpustack/runner:x"),
        ("gpustack/runner:x", "", SPARE, f"{SPARE}/gpustack/runner:x"),
        ("gpustack/runner:x", "", "", "gpustack/runner:x"),
        ("vllm/vllm-openai:x", "", SPARE, "vllm/vllm-openai:x"),
        ("vllm/vllm-openai:x", f" {MIRROR}/ ", SPARE, f"{MIRROR}/vllm/vllm-openai:x"),
        ("localhost/gpustack/runner:x", MIRROR, SPARE, "localhost/gpustack/runner:x"),
    ],
)
def test_the_peers_rule_keeps_its_fallback_for_its_own_images(
    image: str, default: str, fallback: str, place: str
) -> None:
    assert overridden(image, Registries(default=default, fallback=fallback)) == place
