"""The image of an engine on one host."""

from __future__ import annotations

from moorage.images.choice import choose_image
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.engine import EngineTraits
from moorage.spec import EngineName, ModelSpec


def image_on(spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, kind: str) -> Image:
    """The image that suits a host's processors and the driver of its accelerators.

    Args:
        spec: What the user wrote.
        engine: The engine.
        host: The host.
        kind: Accelerator type, or `cpu`.

    Raises:
        Failure: `NO_IMAGE` when none can work.
    """
    device = host.first(kind)
    return choose_image(
        spec,
        engine.name,
        engine.default_version,
        kind,
        host.architecture,
        runtime=device.runtime_version if device else "",
        family=device.family if device else "",
        configured=host.engine_versions(spec.engine.custom or engine.name),
        closed=engine.name == EngineName.CUSTOM,
        more=host.catalogue,
    )
