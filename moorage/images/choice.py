"""Which image serves: the one in the spec, else the engine's official one for the hardware."""

from __future__ import annotations

from moorage.failures import Cause, Failure
from moorage.images.catalogue import CATALOGUE
from moorage.images.image import Image
from moorage.spec import EngineName, ModelSpec
from moorage.values import Origin


def choose_image(
    spec: ModelSpec, engine: EngineName, default_version: str, kind: str, architecture: str
) -> Image:
    """The image for an engine on one kind of hardware.

    Args:
        spec: What the user wrote.
        engine: The engine.
        default_version: Version to take when the spec names none.
        kind: Accelerator type, or `cpu`.
        architecture: CPU architecture of the host, such as `amd64`.

    Raises:
        Failure: `NO_IMAGE` when none is known; never another hardware's image instead.
    """
    if spec.engine.image:
        return Image(
            reference=spec.engine.image,
            engine_version=spec.engine.version or "",
            origin=Origin.USER,
            reason="engine.image in the spec",
        )
    version = spec.engine.version or default_version
    for row in CATALOGUE:
        if (row.engine, row.accelerator_type) != (engine, kind):
            continue
        if architecture in row.architectures:
            return Image(
                reference=row.template.format(version=version),
                engine_version=version,
                origin=Origin.DEFAULT,
                reason=f"{engine}'s official image for {kind}",
            )
        raise Failure(
            Cause.NO_IMAGE,
            f"{engine}'s image for {kind} is built for {', '.join(row.architectures)},"
            f" the host is {architecture}",
        )
    raise Failure(Cause.NO_IMAGE, f"no official image of {engine} for {kind} is known")
