"""Sites: hosts that one worker reaches. A host says with the label `site` which one is its own."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet

SITE_LABEL = "site"


def at_site(fleet: Fleet, site: str) -> Fleet:
    """The part of a fleet that can be reached from a site.

    Args:
        fleet: All hosts.
        site: Where the flow runs; empty = all hosts are reached from here.

    Returns:
        The hosts of that site and those that name none, such as this machine.

    Raises:
        Failure: `BAD_FLEET` when there is none.
    """
    if not site:
        return fleet
    hosts = tuple(host for host in fleet.hosts if host.labels.get(SITE_LABEL, site) == site)
    if not hosts:
        others = ", ".join(dict.fromkeys(host.labels[SITE_LABEL] for host in fleet.hosts))
        raise Failure(
            Cause.BAD_FLEET,
            f"this worker is at the site {site}, and the fleet has hosts at {others} only",
            suggestion="Send the run to the work queue of that site, or correct MOORAGE_SITE of"
            f" the worker or the label `{SITE_LABEL}` of the hosts.",
        )
    return fleet.model_copy(update={"hosts": hosts})
