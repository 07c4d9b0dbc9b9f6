"""Looking at a host that is another machine: all that is there is Docker."""

from __future__ import annotations

from typing import Any

from docker.errors import DockerException
from requests.exceptions import RequestException

from moorage.access import Access
from moorage.adapters.docker_client import connect, forget_clients
from moorage.adapters.docker_errors import reach_failure
from moorage.adapters.helper import run_helper
from moorage.failures import Cause, Failure
from moorage.images.registries import Registries
from moorage.survey.facts import HostFacts
from moorage.survey.probe import SCRIPT, read_probe

ASK_SECONDS = 10
PROBE_SECONDS = 30
PULL_SECONDS = 300


def look_at(access: Access, helper_image: str, registries: Registries, gpus: bool) -> HostFacts:
    """What the daemon and a probe say of a host.

    Args:
        access: The way to its daemon.
        helper_image: Image of the probe; it is pulled where it is not there.
        registries: Where from.
        gpus: Whether to look for accelerators.

    Raises:
        Failure: When the daemon cannot be talked to.
    """
    try:
        told = connect(access, ASK_SECONDS).info()
    except (DockerException, RequestException) as error:
        forget_clients()
        raise reach_failure(error, access.address) from error
    try:
        return _probed(access, _have(access, helper_image, registries), gpus)
    except Failure as failure:
        return _told(told, f"the probe did not run, so its use of RAM is not known: {failure}")
    except (DockerException, RequestException, ValueError) as error:
        return _told(told, f"the probe did not run, so its use of RAM is not known: {error}")


def _probed(access: Access, image: str, gpus: bool) -> HostFacts:
    if gpus:
        try:
            return _probe(access, image, gpus=True)
        except Failure as failure:
            if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
                raise
    return _probe(access, image, gpus=False)


def _probe(access: Access, image: str, *, gpus: bool) -> HostFacts:
    command = ("sh", "-c", SCRIPT)
    said = run_helper(access, image, command, purpose="probe", seconds=PROBE_SECONDS, gpus=gpus)
    return read_probe(said)


def _have(access: Access, image: str, registries: Registries) -> str:
    """The name under which the host has the image, after a pull if it must be."""
    client = connect(access, PULL_SECONDS)
    there = {name for item in client.api.images() for name in item.get("RepoTags") or ()}
    places = (image, *registries.places(image))
    found = next((place for place in places if place in there), None)
    if found:
        return found
    client.images.pull(places[-1])
    return places[-1]


def _told(info: dict[str, Any], trouble: str) -> HostFacts:
    """What the daemon itself says; nobody knows then what is in use."""
    total = int(info["MemTotal"])
    return HostFacts(cores=int(info["NCPU"]), ram_total=total, ram_free=total, troubles=(trouble,))
