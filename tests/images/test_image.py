"""An image is run by what identifies it best, and found by it on hosts."""

from __future__ import annotations

import pytest

from moorage.images.image import common_image
from tests.builders import an_image

DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("known", "pinned"),
    [
        ({"digest": DIGEST, "identity": "sha256:1"}, f"own.io:5000/vllm@{DIGEST}"),
        ({"digest": "", "identity": "sha256:1"}, "sha256:1"),
        ({"digest": ""}, "own.io:5000/vllm:v1"),
    ],
    ids=str,
)
def test_what_is_executed_is_pinned_as_well_as_is_known(known: dict[str, str], pinned: str) -> None:
    assert an_image(reference="own.io:5000/vllm:v1", **known).pinned == pinned


def test_one_digest_is_one_image_whatever_ids_the_stores_of_hosts_give_it() -> None:
    there = {host: an_image(identity=f"sha256:{host}") for host in ("gpu-1", "gpu-2")}
    assert common_image(there) == there["gpu-1"]


@pytest.mark.parametrize(
    ("digest", "there", "has"),
    [
        ("", "acme:1", True),
        ("", "acme:2", False),
        ("sha256:a", "mirror.lan/acme@sha256:a", True),
        ("sha256:a", "acme:1", False),  # the tag may name another image there
    ],
)
def test_a_host_has_an_image_by_its_digest_else_by_its_name(
    digest: str, there: str, has: bool
) -> None:
    image = an_image().model_copy(update={"reference": "acme:1", "digest": digest})
    assert image.is_among({there}) is has
