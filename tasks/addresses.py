"""The ledger follows the fleet in how hosts are reached, as far as that is the fleet's to say."""

from collections.abc import Mapping

from moorage.adapters.system.threads import threaded
from moorage.inventory.fleet import Fleet
from moorage.releases.addresses import addresses_in, hosts_of, reached_at
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import FINAL
from tasks.context import ledger
from tasks.policy import may_readdress, site_addresses


@threaded
def follow(fleet: Fleet) -> None:
    """Write how the fleet reaches the hosts of the ledger: with another key or user, for example.

    So releases that an earlier fleet deployed there are reached by every command.
    """
    record_addresses(addresses_in(fleet, ledger().unseen_hosts.known_hosts()))


def record_addresses(addresses: Mapping[str, str]) -> None:
    """Write how hosts, and the releases on them, are reached by this run, as far as it may.

    The site's fleet changes it for all releases. Any other fleet is one caller's: it changes his
    own releases, and a host on which there are no others. Others may lack its keys.
    """
    own, site = ledger(), site_addresses()
    of_site = {name: at for name, at in addresses.items() if site.get(name) == at}
    kept = set[str]()
    for row in _reached_otherwise(addresses):
        is_own = row.release is not None and may_readdress(row.release.submission)
        allowed = addresses if is_own else of_site
        own.releases.readdress(row.id, allowed)
        kept |= hosts_of(row) - allowed.keys()
    changed = addresses.items() - own.unseen_hosts.known_hosts().items()
    own.unseen_hosts.readdress({name: at for name, at in changed if name not in kept})


def _reached_otherwise(addresses: Mapping[str, str]) -> list[ReleaseRow]:
    """The releases that have not ended and are recorded at other addresses than these."""
    overviews = ledger().overviews
    rows = [one.row for one in (*overviews.current(), *overviews.not_finished())]
    # Only what may differ is read as a whole. What stopped for a while has a plan alone.
    suspects = {
        row.id
        for row in rows
        if row.workloads or row.state not in FINAL
        if not row.workloads or reached_at(row, addresses) != row
    }
    whole = map(ledger().releases.get, sorted(suspects))
    return [row for row in whole if reached_at(row, addresses) != row]
