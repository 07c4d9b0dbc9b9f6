"""Gateways in the ledger, the API keys of callers, and the usage of callers."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter

from sqlalchemy import delete, insert, select, text, update

from moorage.adapters.ledger.database import LedgerPart, gate, reading, ungated
from moorage.adapters.ledger.tables import API_KEYS, GATE, GATEWAYS, USAGE, replace_rows
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayOptions, LogPosition
from moorage.gateway.table import ApiKey
from moorage.gateway.usage import NUMBERS, Usage


class Gateways(LedgerPart):
    """The gateways that follow a ledger."""

    def put(self, gateway: Gateway) -> None:
        """Write a gateway, or replace it."""
        with gate(self._engine) as connection:
            row = gateway.model_dump(mode="json")
            replace_rows(connection, GATEWAYS, GATEWAYS.c.name == gateway.name, [row])

    def change(self, name: str, options: GatewayOptions) -> None:
        """Give a gateway other options, and clear its problem, which they may solve."""
        with gate(self._engine) as connection:
            own = update(GATEWAYS).where(GATEWAYS.c.name == name)
            connection.execute(own.values(options=options.model_dump(mode="json"), problem=""))

    def drop(self, name: str) -> None:
        """Delete a gateway, if it exists."""
        with gate(self._engine) as connection:
            connection.execute(delete(GATEWAYS).where(GATEWAYS.c.name == name))

    def all(self) -> tuple[Gateway, ...]:
        """All gateways, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(GATEWAYS).order_by(GATEWAYS.c.name)).mappings()
            return tuple(Gateway.from_record(dict(row)) for row in rows)

    def get(self, name: str) -> Gateway | None:
        """The gateway of a name; None = it does not exist."""
        return next((one for one in self.all() if one.name == name), None)

    def epoch(self) -> int:
        """The ledger's epoch: it grows with every transaction of the gate."""
        with reading(self._engine) as connection:
            return int(connection.scalar(select(GATE.c.epoch)) or 0)

    def draining(self, release: str) -> int:
        """The requests in flight, over all gateways, on a release that gets no new requests."""
        return sum(one.draining.get(release, 0) for one in self.all())

    def report(self, name: str, epoch: int, draining: Mapping[str, int], problem: str) -> None:
        """Write the report of a gateway. The ledger's epoch stays, because no route changes."""
        with ungated(self._engine) as connection:
            values = {"epoch": epoch, "draining": dict(draining), "problem": problem}
            connection.execute(update(GATEWAYS).where(GATEWAYS.c.name == name).values(**values))

    def report_use(self, name: str, used: Mapping[str, datetime]) -> None:
        """Write when each release got its last request. The epoch stays."""
        with ungated(self._engine) as connection:
            values = {"used": {release: at.isoformat() for release, at in used.items()}}
            connection.execute(update(GATEWAYS).where(GATEWAYS.c.name == name).values(**values))


KEY = ("caller", "model", "day")
COLUMNS = KEY + NUMBERS
ADD = text(
    f"INSERT INTO {USAGE.name} ({', '.join(COLUMNS)})"
    f" VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
    f" ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET"
    f" {', '.join(f'{name} = {USAGE.name}.{name} + excluded.{name}' for name in NUMBERS)}"
)
"""Adds to a row or makes it. SQLAlchemy has this only with the dialect of one database."""


class Usages(LedgerPart):
    """The usage of callers, by model and day."""

    def add(self, gateway: str, used: Iterable[Usage], counted: LogPosition) -> None:
        """Add a gateway's counts and its log position in one transaction: nothing counts twice."""
        with ungated(self._engine) as connection:
            # Sorted: gateways that lock rows in different orders would wait for each other.
            if rows := sorted((one.model_dump() for one in used), key=itemgetter(*KEY)):
                connection.execute(ADD, rows)
            own = update(GATEWAYS).where(GATEWAYS.c.name == gateway)
            connection.execute(own.values(counted=counted.model_dump()))

    def since(self, day: str) -> tuple[Usage, ...]:
        """The usage since a day, newest day first, by model and caller."""
        order = (USAGE.c.day.desc(), USAGE.c.model, USAGE.c.caller)
        with reading(self._engine) as connection:
            rows = connection.execute(select(USAGE).where(USAGE.c.day >= day).order_by(*order))
            return tuple(Usage.from_record(dict(row)) for row in rows.mappings())


class ApiKeys(LedgerPart):
    """The keys of callers, kept as digests."""

    def add(self, key: ApiKey) -> None:
        """Add a key; raises `BAD_SETTING` when a key of that name exists."""
        row = {**key.model_dump(mode="json"), "created_at": key.created_at, "expires": key.expires}
        with gate(self._engine) as connection:
            named = select(API_KEYS.c.name).where(API_KEYS.c.name == key.name)
            if connection.scalar(named):
                advice = f"Revoke it with `moorage key revoke {key.name}`, or choose another name."
                raise Failure(Cause.BAD_SETTING, f"there is a key '{key.name}'", suggestion=advice)
            connection.execute(insert(API_KEYS).values(**row))

    def revoke(self, name: str) -> bool:
        """Delete a key; returns whether it existed."""
        with gate(self._engine) as connection:
            return connection.execute(delete(API_KEYS).where(API_KEYS.c.name == name)).rowcount > 0

    def all(self) -> tuple[ApiKey, ...]:
        """All keys, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(API_KEYS).order_by(API_KEYS.c.name)).mappings()
            return tuple(ApiKey.from_record(dict(row)) for row in rows)
