"""The way to a registry, and whom it trusts: as the Docker daemon goes it.

HTTPS, trusting the system's authorities and those in `certs.d`; a registry that is called insecure
or is on this machine by HTTPS without a look at its certificate, else by plain HTTP.
https://docs.docker.com/engine/security/certificates/
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from pathlib import Path
from typing import NamedTuple

import httpx

from moorage.inventory.registries import DOCKER_HUB

PORT = re.compile(r":\d+$")
HUB_HOST = "registry-1.docker.io"
CERTIFICATES = (Path("/etc/docker/certs.d"), Path("~/.config/docker/certs.d"))
"""Where daemons look for certificates: one of the system, and one without root."""


class Way(NamedTuple):
    """An address, and how its certificate is judged."""

    base: str
    trust: ssl.SSLContext


def ways(host: str, *, insecure: bool) -> tuple[Way, ...]:
    """The ways to a registry, in the order in which they are tried.

    Args:
        host: Host and port, or `docker.io`.
        insecure: Whether it is listed as one.
    """
    address = HUB_HOST if host == DOCKER_HUB else host
    trust = httpx.create_ssl_context()
    if not insecure and not is_loopback(host):
        trust.load_default_certs()
        _trust_as_docker(trust, host)
        return (Way(f"https://{address}", trust),)
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    return Way(f"https://{address}", trust), Way(f"http://{address}", trust)


def is_loopback(host: str) -> bool:
    """Whether a host (and port) is this machine."""
    name = PORT.sub("", host)
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _trust_as_docker(trust: ssl.SSLContext, host: str) -> None:
    for folder in (place.expanduser() / host for place in CERTIFICATES):
        for authority in sorted(folder.glob("*.crt")):
            trust.load_verify_locations(authority)
        for own in sorted(folder.glob("*.cert")):
            trust.load_cert_chain(own, own.with_suffix(".key"))
