"""The ledger follows the fleet in how hosts are reached."""

from collections.abc import Mapping

from moorage.adapters.system.threads import threaded
from moorage.inventory.access import machine_of
from moorage.inventory.fleet import Fleet
from tasks.context import ledger


def addresses_in(fleet: Fleet, known: Mapping[str, str]) -> dict[str, str]:
    """How the fleet reaches the hosts that are `known`, where it means the same machines.

    Another machine under a known name is not followed here: only what runs there proves that the
    host has moved (`tasks/observe_fleet.py`).
    """
    named = {host.name: host.access.url for host in fleet.hosts}
    return {
        name: named[name]
        for name in known.keys() & named.keys()
        if machine_of(known[name]) == machine_of(named[name])
    }


@threaded
def follow(fleet: Fleet) -> None:
    """Write how the fleet reaches the hosts of the ledger: with another key or user, for example.

    So releases that an earlier fleet deployed there are reached by every command.
    """
    hosts = ledger().unseen_hosts
    known = hosts.known_hosts()
    hosts.readdress(dict(addresses_in(fleet, known).items() - known.items()))
