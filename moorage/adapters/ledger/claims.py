"""Claims in the ledger, committed through one gate: all claims of a release, or none.

The ledger keeps a claim under the name of its host. It also records the machine behind each name
that has claims: a machine with a second name would be assigned twice, and two machines under one
name would share one capacity.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from moorage.adapters.ledger.database import LedgerPart, gate, reading
from moorage.adapters.ledger.tables import CLAIMS, HOSTS, RELEASES, replace_rows
from moorage.adapters.ledger.transitions import changing
from moorage.common.failures import Cause, Failure
from moorage.common.values import fields
from moorage.inventory.access import LOCAL, machine_of
from moorage.inventory.claims import Claim, Resource, by_host, remainder
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.fit import misfits
from moorage.releases.states import FINAL, SERVING, ReleaseState

PROVEN = SERVING | {ReleaseState.STOPPING, ReleaseState.ASLEEP}
"""States in which a release really uses its claims. Asleep, it has only what its engines keep."""


class Claims(LedgerPart):
    """The claims of all releases."""

    def all(self) -> tuple[Claim, ...]:
        """All claims of all releases."""
        with reading(self._engine) as connection:
            return _read_claims(connection)

    def commit(
        self,
        release: str,
        wanted: Sequence[Claim],
        fleet: FleetSnapshot,
        *,
        instead_of: str = "",
        overcommit: bool = False,
        to: ReleaseState = ReleaseState.SCHEDULED,
    ) -> None:
        """Reserve all claims of a release and move it to another state, or change nothing.

        The arithmetic of placement runs again, on fresh rows, inside the transaction.

        Args:
            fleet: The snapshot of the proposal. Fresh claims replace the claims in it.
            instead_of: Release that will stop for this one, and gives up its claims now.
            overcommit: Whether accelerators may be claimed beyond their memory.

        Raises:
            Failure: `CLAIM_CONFLICT` when other claims took the room first, `BAD_FLEET` when the
                fleet has another name for a machine with claims.
        """
        with changing(self._engine) as change:
            connection = change.connection
            _require_same_machines(connection, fleet)
            held = _current(_read_claims(connection, CLAIMS.c.release == instead_of), fleet)
            free(connection, instead_of)
            free(connection, release)  # a release that wakes has kept its ports
            _require_fit(connection, wanted, fleet, overcommit)
            insert_claims(connection, release, wanted)
            record_machines(connection, fleet, {claim.host for claim in wanted})
            # The old release keeps the remainder of its claims until it has stopped. It still
            # runs, and it must fit again if this release fails.
            insert_claims(connection, instead_of, remainder(held, wanted))
            change.move(release, to)

    def keep_ports(self, release: str) -> None:
        """Free all claims of a release except its ports."""
        with gate(self._engine) as connection:
            free(connection, release, but_ports=True)

    def hand_back(self, release: str, to: str, claims: Sequence[Claim]) -> None:
        """Undo `commit(instead_of=...)`: free a release and give the old one its claims back."""
        with gate(self._engine) as connection:
            hand_back(connection, release, to, claims)


def free(connection: Connection, release: str, *, but_ports: bool = False) -> None:
    """Free the claims of a release, inside a transaction."""
    own = [CLAIMS.c.release == release]
    if but_ports:
        own.append(CLAIMS.c.resource != Resource.PORT)
    connection.execute(delete(CLAIMS).where(*own))


def hand_back(connection: Connection, release: str, to: str, claims: Sequence[Claim]) -> None:
    """Free a release, and give the release `to` exactly these claims, inside a transaction.

    A release that has ended gets none, because they would never be freed.
    """
    free(connection, release)
    state = connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == to))
    if state is not None and state not in FINAL:
        free(connection, to)
        insert_claims(connection, to, claims)


def _require_fit(
    connection: Connection, wanted: Sequence[Claim], fleet: FleetSnapshot, overcommit: bool
) -> None:
    """Check claims against fresh rows of their own hosts only: others wait for the gate."""
    needs = by_host(wanted)
    fresh = by_host(_read_claims(connection, CLAIMS.c.host.in_(needs)))
    for name, own in needs.items():
        host = fleet.host(name).with_claims(tuple(fresh.get(name, ())))
        if reasons := misfits(host, own, overcommit=overcommit):
            raise Failure(Cause.CLAIM_CONFLICT, f"{name}: {'; '.join(reasons)}")


def _current(held: Sequence[Claim], fleet: FleetSnapshot) -> list[Claim]:
    """Claims as the hosts of a fleet number their accelerators now."""
    own = by_host(held)
    hosts = {host.name: host for host in fleet.hosts if host.name in own}
    current: list[Claim] = []
    for name, claims in own.items():
        current += hosts[name].current_claims(claims) if name in hosts else claims
    return current


def _read_claims(connection: Connection, *where: ColumnElement[bool]) -> tuple[Claim, ...]:
    """Claims in order. A separate query of releases replaces a join: claims are far more."""
    proven = select(RELEASES.c.id).where(RELEASES.c.state.in_(PROVEN))
    if where:
        proven = proven.where(RELEASES.c.id.in_(select(CLAIMS.c.release).where(*where)))
    own = set(connection.scalars(proven))
    rows = connection.execute(select(*_COLUMNS).where(*where).order_by(CLAIMS.c.id)).all()
    return tuple([claim_of(row, pending=row[0] not in own) for row in rows])


_STORED = ("release", "host", "resource", "index", "amount", "device")
_COLUMNS = [CLAIMS.c[name] for name in _STORED]

_RESOURCES = {str(one): one for one in Resource}


def claim_of(row: Sequence[Any], *, pending: bool) -> Claim:
    """A claim from its row without the key. It must be fast, for tens of thousands of rows."""
    release, host, resource, index, amount, device = row
    # The sums raise `TypeError` where SQLite stored a text instead of a number, or the reverse.
    known = device + "" if device else ""
    return Claim(host, _RESOURCES[resource], amount + 0, index + 0, release, pending, device=known)


def insert_claims(connection: Connection, release: str, claims: Sequence[Claim]) -> None:
    """Write claims of a release, inside a transaction that has checked that they fit."""
    if claims:
        rows = [{name: getattr(one, name) for name in _STORED} for one in claims]
        own = [{**row, "release": release, "device": row["device"] or None} for row in rows]
        connection.execute(insert(CLAIMS), own)


def _require_same_machines(connection: Connection, fleet: FleetSnapshot) -> None:
    """Refuse a fleet that names machines with claims otherwise than the ledger does."""
    if connection.scalar(select(CLAIMS.c.id).limit(1)) is None:
        return
    known = dict(connection.execute(select(HOSTS.c.name, HOSTS.c.machine)).tuples().all())
    unknown = select(CLAIMS.c.host).distinct().where(CLAIMS.c.host.not_in(select(HOSTS.c.name)))
    known |= dict.fromkeys(connection.scalars(unknown), LOCAL)
    facts = list(map(fields, fleet.hosts))
    now = {host["name"]: machine_of(host["address"]) for host in facts}
    machines = set(now.values())
    # Nearly all hosts of a large fleet have not moved, so only the differences are compared.
    for name, before in sorted(known.items() - now.items()):
        if name in now:
            found = f" at {before}; this fleet has it at {now[name]}"
            advice = (
                "`moorage reconcile` with this fleet finds its releases if it is the same host."
                " Else give the other machine a name of its own"
            )
        elif before in machines:
            found = ", which this fleet does not name"
            advice = f"Name the host '{name}' in the fleet file"
        else:
            continue
        query = select(CLAIMS.c.release).where(CLAIMS.c.host == name).order_by(CLAIMS.c.id)
        if release := connection.scalar(query.limit(1)):
            raise Failure(
                Cause.BAD_FLEET,
                f"{release} holds claims on host '{name}'{found}",
                suggestion=f"{advice}, or retire {release} first.",
            )


def record_machines(connection: Connection, fleet: FleetSnapshot, names: set[str]) -> None:
    """Write the machine, the address and the capacities of some hosts of a fleet.

    A machine that is known keeps its address: a claim does not tell how others reach it.
    """
    own = HOSTS.c.name.in_(names)
    known = dict(
        connection.execute(select(HOSTS.c.name, HOSTS.c.address).where(own)).tuples().all()
    )
    rows = [_machine(host, known.get(host.name)) for host in fleet.hosts if host.name in names]
    replace_rows(connection, HOSTS, own, rows)


def _machine(host: HostSnapshot, known: str | None) -> dict[str, Any]:
    machine = machine_of(host.address)
    return {
        "name": host.name,
        "machine": machine,
        "address": known if known and machine_of(known) == machine else host.address,
        "capacity": [one.model_dump(mode="json") for one in host.capacities],
    }
