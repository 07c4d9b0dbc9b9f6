from __future__ import annotations

import pytest

from moorage.images.ascend import cann_variant


@pytest.mark.parametrize(
    ("family", "variant", "known"),
    [
        ("Ascend910A", "910", True),
        ("Ascend910B", "910", True),
        ("Ascend910B1", "910b", True),
        ("Ascend910B4-1", "910b", True),
        ("ascend910b3", "910b", True),
        ("Ascend310P3", "310p", True),
        ("Ascend310B1", "310b", True),
        ("Ascend910_9391", "a3", True),
        ("Ascend950PR", "950", True),
        ("Ascend1234", "910b", False),
        ("", "910b", False),
    ],
)
def test_the_variant_of_an_image_follows_from_the_chip(
    family: str, variant: str, known: bool
) -> None:
    assert cann_variant(family) == (variant, known)
