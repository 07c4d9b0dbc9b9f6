"""Ascend chips: which variant of a CANN image is built for which of them."""

from __future__ import annotations

DEFAULT_VARIANT = "910b"
"""Taken when a chip is not known, as GPUStack does."""

VARIANTS = {
    "910": "PremiumA ProA A ProB B",
    "310p": "310P1 310P2 310P3 310P4 310P5 310P7",
    "910b": "910B1 910B2 910B2C 910B3 910B4 910B4-1",
    "310b": "310B1 310B2 310B3 310B4",
    "a3": "910 910_9391 910_9392 910_9381 910_9382 910_9372 910_9362 910_9363",
    "950": "910_9579 910_95 950",
}
"""Chips (SoC names without `Ascend`; those of the first 910 without it, too) by variant of CANN.

The names are those of GPUStack's detector.
"""

_BY_CHIP = {
    f"ascend{'910' if variant == '910' else ''}{name}".lower(): variant
    for variant, names in VARIANTS.items()
    for name in names.split()
}


def cann_variant(family: str) -> tuple[str, bool]:
    """The variant for a chip, and whether the chip is known.

    Args:
        family: SoC name such as `Ascend910B3`, in any case.
    """
    name = family.strip().lower()
    if name.startswith("ascend950"):
        return "950", True
    return _BY_CHIP.get(name, DEFAULT_VARIANT), name in _BY_CHIP
