"""Routes in the ledger: where requests for model names go."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, and_, case, or_, select, update

from moorage.adapters.ledger.database import LedgerPart, gate, reading
from moorage.adapters.ledger.tables import RELEASES, WORKLOADS
from moorage.engines.workload import OPENAI
from moorage.placement.role import Role
from moorage.releases.release_row import ASLEEP, STOPPED_FIRST, SUPERSEDED
from moorage.releases.routing import Canary, Route
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState
from moorage.spec import EngineName
from moorage.spec.keep_alive import NEVER
from moorage.spec.routing import Routing


class CurrentRoutes(NamedTuple):
    """All routes at one moment.

    Attributes:
        serving: The release of each model that serves, by name.
        canaries: Releases that get a share of the requests before they serve.
        sleepers: Sleeping releases, which a request wakes, and those that fall asleep or wake now.
        making_room: Releases that stop, or have stopped, before their successor serves.
    """

    serving: tuple[Route, ...]
    canaries: tuple[Route, ...]
    sleepers: tuple[Route, ...]
    making_room: tuple[Route, ...]


class Routes(LedgerPart):
    """The routes of requests: a request for a model name goes to the release that holds the name.

    The transaction in which a release takes over is the switch: routes have no state of their own.
    """

    def share(self, release: str, canary: Canary | None) -> None:
        """Send a share of the model's requests to a release that does not serve yet.

        Args:
            release: Id of the release. A release that serves or has ended ignores its share.
            canary: Its share; None = it gets no more requests.
        """
        with gate(self._engine) as connection:
            own = update(RELEASES).where(RELEASES.c.id == release)
            connection.execute(own.values(canary=canary.model_dump() if canary else None))

    def had_share(self, release: str) -> bool:
        """Whether a release has a share, from before it served, that nobody has removed yet."""
        with reading(self._engine) as connection:
            own = select(RELEASES.c.canary).where(RELEASES.c.id == release)
            return connection.scalar(own) is not None

    def current(self) -> CurrentRoutes:
        """All routes, in one query, so that a model whose state changes meanwhile is never missing.

        A canary is in `canaries` alone.
        """
        canary = and_(RELEASES.c.state.in_(UNFINISHED), RELEASES.c.canary.is_not(None))
        anywhere = or_(RELEASES.c.state.in_(SERVING), canary, _sleeps(), _makes_room())
        found = self._read(anywhere)
        canaries = tuple(one for one in found if one.state in UNFINISHED and one.canary)
        serving = tuple(one for one in found if one.state in SERVING)
        awake = {one.model for one in serving}
        left = [one for one in found if one.model not in awake and one not in canaries]
        making_room = tuple(one for one in left if one.makes_room)
        return CurrentRoutes(
            serving, canaries, tuple(one for one in left if not one.makes_room), making_room
        )

    def awaits_successor(self, model: str) -> bool:
        """Whether a release has stopped for its successor, and no release serves the model yet."""
        own = RELEASES.c.model == model
        found = self._read(and_(own, or_(RELEASES.c.state.in_(SERVING), _makes_room())))
        return bool(found) and all(one.makes_room for one in found)

    def routes(self, model: str = "") -> tuple[Route, ...]:
        """The current routes, by name; at most one for a single model.

        One query without whole records, because clients may call this before each request.
        """
        serving = RELEASES.c.state.in_(SERVING)
        return self._read(and_(serving, RELEASES.c.model == model) if model else serving)

    def _read(self, where: ColumnElement[bool]) -> tuple[Route, ...]:
        columns = (RELEASES.c.id, RELEASES.c.model, RELEASES.c.state, RELEASES.c.created_at)
        query = (
            select(
                *columns,
                RELEASES.c.canary,
                RELEASES.c.spec,
                WORKLOADS.c.workload,
                _makes_room().label("makes_room"),
                _engine_of_adapters().label("engine"),
                _planned_path().label("planned_path"),
            )
            .outerjoin(WORKLOADS, WORKLOADS.c.release == RELEASES.c.id)
            .where(where)
            .order_by(RELEASES.c.model, WORKLOADS.c.name)
        )
        found: dict[str, list[Any]] = {}
        with reading(self._engine) as connection:
            for row in connection.execute(query):
                found.setdefault(row.id, []).append(row)
            return tuple(_route(rows) for rows in found.values())


def canary_of(row: Row[Any]) -> Canary | None:
    """The share of a release before it serves, from its row; None = it has none."""
    return Canary.from_record(row.canary) if row.canary else None


def _sleeps() -> ColumnElement[bool]:
    falling = RELEASES.c.cause.startswith(ASLEEP, autoescape=True)
    stopping = and_(RELEASES.c.state == ReleaseState.STOPPING, falling)
    return or_(RELEASES.c.state.in_((ReleaseState.ASLEEP, ReleaseState.WAKING)), stopping)


def _makes_room() -> ColumnElement[bool]:
    gives_way = RELEASES.c.cause.like(f"{SUPERSEDED} %, {STOPPED_FIRST}%")
    return and_(RELEASES.c.state == ReleaseState.STOPPING, gives_way)


def _engine_of_adapters() -> ColumnElement[str | None]:
    """The engine of a release that may serve adapters; other releases' records are not read."""
    spec = RELEASES.c.spec
    adapters = or_(spec["lora"].as_string() != "[]", spec["lora_updates"].as_string().is_not(None))
    return case((adapters, RELEASES.c.record["plan"]["engine"].as_string()))


def _planned_path() -> ColumnElement[str | None]:
    """The base path in the plan of a release without workloads, such as one that sleeps."""
    path = RELEASES.c.record["plan"]["containers"][0]["base_path"].as_string()
    return case((WORKLOADS.c.name.is_(None), path))


def _adapter_name(engine: str | None, model: str, adapter: str) -> str:
    if not engine:
        return adapter
    from moorage.engines.registry import ENGINES  # noqa: PLC0415  (few models have adapters)

    known = ENGINES.get(EngineName(engine))
    return known.adapter_name(model, adapter) if known else adapter


def _route(rows: list[Any]) -> Route:
    first = rows[0]
    workloads = [row.workload for row in rows if row.workload]
    leaders = [one for one in workloads if one.get("role", Role.LEADER) == Role.LEADER]
    loaded = [{pin["name"] for pin in one.get("adapters", ())} for one in leaders]
    named = {adapter["name"] for adapter in first.spec.get("lora", ())}
    served = named.union(set.intersection(*loaded) if loaded else ())
    paths = (one.get("base_path") for one in leaders)
    names = (_adapter_name(first.engine, first.model, name) for name in served)
    return Route(
        model=first.model,
        release=first.id,
        state=ReleaseState(first.state),
        endpoints=tuple(one["endpoint"] for one in leaders if one["endpoint"]),
        base_path=next(filter(None, (*paths, first.planned_path)), OPENAI),
        adapters=tuple(sorted(filter(None, names))),
        since=first.created_at,
        canary=canary_of(first),
        keep_alive=first.spec.get("keep_alive", NEVER),
        routing=Routing(first.spec.get("routing", Routing.LEAST_REQUEST)),
        timeout_seconds=first.spec.get("timeout_seconds", 0),
        makes_room=first.makes_room,
    )
