"""The image of Envoy on this machine, pinned as the images of engines are."""

import platform
from functools import partial

from moorage.adapters.docker.images import DockerImages, ensure_image
from moorage.adapters.registry.pinning import credentials, identify_image, pin_image
from moorage.adapters.system.settings import Settings
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.registries import Registries
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import ARCHITECTURES

PULL_SECONDS = 600.0


def present_envoy_image(reference: str, registries: Registries) -> str:
    """An image that this machine's Docker has now: by digest, or by local id where it was built.

    Args:
        reference: By tag or by digest.
        registries: Where images are taken from.

    Raises:
        Failure: When no registry has it, it cannot be pulled, or Docker does not answer.
    """
    machine = platform.machine()
    host = HostSnapshot(
        name="this machine",
        architecture=ARCHITECTURES.get(machine, machine),
        registries=registries,
    )
    wanted = Image(reference=reference, origin=Origin.DEFAULT, reason="Envoy of the gateway")
    image = pin_image(wanted, host)
    ensure_image(
        DockerImages(host.address),
        image,
        Settings().locks,
        lambda _done, _total: None,
        credentials=partial(credentials, registries, image.reference),
        wait_seconds=PULL_SECONDS,
    )
    return identify_image(image, host).pinned
