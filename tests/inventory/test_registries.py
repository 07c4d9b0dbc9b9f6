from __future__ import annotations

import pytest
from pydantic import ValidationError

from moorage.inventory.registries import Registries, RegistryLogin

DIGEST = f"sha256:{'0' * 64}"
MIRROR, SPARE = "mirror.example.net", "registry.example.org"


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
    assert (
        list(Registries(default=default or None, fallback=fallback or None).places(image)) == places
    )


def test_a_login_belongs_to_one_registry() -> None:
    hub, own = (
        RegistryLogin(registry=name, username="me", password="SECRET")
        for name in ("docker.io", "own.io:5000")
    )
    registries = Registries(logins=(hub, own))
    assert registries.login("vllm/vllm-openai:v1") == hub
    assert registries.login("index.docker.io/vllm/vllm-openai:v1") == hub
    assert registries.login("own.io:5000/vllm:v1") == own
    assert registries.login("quay.io/vllm:v1") is None


def test_a_registry_may_be_an_address_of_ipv6() -> None:
    login = RegistryLogin(registry="[fd00::5]:5000", username="me", password="SECRET")
    registries = Registries(
        default="[fd00::5]:5000/hub", fallback="[fd00::6]", logins=(login,), insecure=("[fd00::6]",)
    )
    first, second = registries.places("vllm/vllm-openai:v1")
    assert first == "[fd00::5]:5000/hub/vllm/vllm-openai:v1"
    assert second == "[fd00::6]/vllm/vllm-openai:v1"
    assert registries.login(first) == login


@pytest.mark.parametrize(
    "name", ["http://mirror", "mirror.io/Upper", "", "a b", "user@host", "[x]", "::1"]
)
def test_what_is_no_registry_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Registries(default=name)
