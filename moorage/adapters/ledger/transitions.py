"""State changes of releases: checked and logged in one transaction.

Three checks prevent a wrong state. The first is the table of `moorage.releases.states`, which
gives a clear message. The second: the update names the former state, so one of two concurrent
writers changes nothing. The third: the database refuses a transition that is not in
`allowed_transitions`, and a `releases.state` other than that of the newest transition.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, insert, select, update

from moorage.adapters.ledger.database import gate
from moorage.adapters.ledger.tables import CLAIMS, RELEASES, TRANSITION_LOG
from moorage.adapters.system.threads import variable_scope
from moorage.common.failures import Cause, Failure
from moorage.releases.states import SERVING, TRANSITIONS, ReleaseState, Transition

LOGGED = select(TRANSITION_LOG, RELEASES.c.model).join_from(TRANSITION_LOG, RELEASES)
"""All transitions, with the models of their releases."""


class Change:
    """An exclusive transaction that may move releases."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.made: list[Transition] = []

    def state_of(self, release: str) -> ReleaseState:
        """The current state of a release; raises `UNKNOWN_RELEASE` if it does not exist."""
        state = self.connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == release))
        if state is None:
            raise Failure(Cause.UNKNOWN_RELEASE, release)
        return ReleaseState(state)

    def move(self, release: str, to: ReleaseState, cause: str = "") -> None:
        """Move a release to another state.

        Raises:
            Failure: `LOST_LOCK` when its state does not allow this, because another process moved
                it, or when another release serves the model.
        """
        before = self.state_of(release)
        if to not in TRANSITIONS[before]:
            raise Failure(Cause.LOST_LOCK, f"{release} is {before} and cannot become {to}")
        transition = self._transition(release, before, to, cause)
        serving = (RELEASES.c.model == transition.model, RELEASES.c.state.in_(SERVING))
        others = select(RELEASES.c.id).where(*serving, RELEASES.c.id != release)
        if to in SERVING and (other := self.connection.scalar(others)):
            raise Failure(Cause.LOST_LOCK, f"{other} runs, so {release} cannot")
        columns = transition.model_dump(exclude={"model", "before", "after", "hosts"})
        self.connection.execute(
            insert(TRANSITION_LOG).values(**columns, from_state=before, to_state=to)
        )
        changed = self.connection.execute(
            update(RELEASES)
            .where(RELEASES.c.id == release, RELEASES.c.state == before)
            .values(state=to, cause=cause, updated_at=transition.at)
        )
        if changed.rowcount != 1:
            raise Failure(Cause.LOST_LOCK, f"{release} is not {before} any more")
        self.made.append(transition)

    def _transition(
        self, release: str, before: ReleaseState, to: ReleaseState, cause: str
    ) -> Transition:
        query = select(func.max(TRANSITION_LOG.c.sequence))
        last = self.connection.scalar(query.where(TRANSITION_LOG.c.release == release)) or 0
        hosts = select(CLAIMS.c.host).where(CLAIMS.c.release == release).distinct()
        model = select(RELEASES.c.model).where(RELEASES.c.id == release)
        return Transition(
            release=release,
            model=str(self.connection.scalar(model)),
            sequence=last + 1,
            before=before,
            after=to,
            at=datetime.now(UTC),
            cause=cause,
            flow_run_id=author().flow_run_id,
            requested_by=author().requested_by,
            hosts=tuple(self.connection.scalars(hosts.order_by(CLAIMS.c.host))),
        )


@contextmanager
def changing(engine: Engine) -> Iterator[Change]:
    """An exclusive transaction. After the commit, the author's callback gets each transition."""
    with gate(engine) as connection:
        change = Change(connection)
        yield change
    for transition in change.made:
        author().on_transition(transition)


def logged(connection: Connection, release: str) -> tuple[Transition, ...]:
    """All transitions of a release, in order."""
    own = LOGGED.where(TRANSITION_LOG.c.release == release).order_by(TRANSITION_LOG.c.sequence)
    return tuple(transition_of(row, row.model) for row in connection.execute(own))


def transition_of(row: Row[Any], model: str) -> Transition:
    """A transition of a release of a model, from its row."""
    return Transition(
        release=row.release,
        model=model,
        sequence=row.sequence,
        before=ReleaseState(row.from_state),
        after=ReleaseState(row.to_state),
        at=row.at,
        cause=row.cause,
        flow_run_id=row.flow_run_id,
        requested_by=row.requested_by,
    )


@dataclass(frozen=True, slots=True)
class Author:
    """The flow run that changes the ledger; outside of a flow run, its id is empty.

    Attributes:
        on_transition: Called with each transition after its commit. It must not fail.
        requested_by: The requester of the run, in one line.
    """

    flow_run_id: str = ""
    on_transition: Callable[[Transition], None] = lambda _: None
    requested_by: str = ""


_AUTHOR: ContextVar[Author | None] = ContextVar("author", default=None)


def author() -> Author:
    """The current author."""
    return _AUTHOR.get() or Author()


def writing_as(one: Author) -> AbstractContextManager[None]:
    """Set the author for a block."""
    return variable_scope(_AUTHOR, one)
