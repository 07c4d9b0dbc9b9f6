"""The image of Envoy on the host where it runs, pinned like the images of engines."""

import platform

from moorage.adapters.docker.connection import connection
from moorage.adapters.hosts.remote_host import (
    ASK_SECONDS,
    ask_daemon,
    describe,
    helper_image_on,
)
from moorage.adapters.registry.pinning import present_image
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.gateway.gateway import GatewayHost
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.registries import Registries
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import ARCHITECTURES

PULL_SECONDS = 600.0


def this_machine(registries: Registries) -> HostSnapshot:
    """This machine, with the fields that choosing an image needs."""
    machine = platform.machine()
    return HostSnapshot(
        name="this machine",
        architecture=ARCHITECTURES.get(machine, machine),
        registries=registries,
    )


def fleet_host(host: Host, fleet: Fleet) -> tuple[HostSnapshot, GatewayHost]:
    """A host, as choosing an image needs it and as gateways record it; pulls the helper's image.

    Raises:
        Failure: `BAD_SETTING` for this machine; also when the host's Docker does not answer or
            cannot pull the helper's image.
    """
    if not host.access.is_remote:
        raise Failure(
            Cause.BAD_SETTING,
            f"host {host.name} is this machine",
            suggestion="Leave --host out.",
        )
    with connection(host.access.url, ASK_SECONDS) as daemon:
        info = ask_daemon(daemon)
        helper = helper_image_on(daemon, host, fleet, info, PULL_SECONDS)
    machine = info["Architecture"]
    there = describe(host).model_copy(
        update={
            "registries": fleet.registries,
            "architecture": ARCHITECTURES.get(machine, machine),
        }
    )
    kept = GatewayHost(
        name=host.name,
        address=host.access.url,
        bind=host.bind,
        helper_image=helper,
    )
    return there, kept


def present_envoy_image(reference: str, host: HostSnapshot) -> str:
    """Pull an image unless the host has it; return it by digest, or by id if built locally.

    Raises:
        Failure: When no registry has the image, the pull fails, or Docker does not answer.
    """
    wanted = Image(reference=reference, origin=Origin.DEFAULT, reason="Envoy of the gateway")
    return present_image(wanted, host, PULL_SECONDS).pinned
