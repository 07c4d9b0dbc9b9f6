"""Every effect of a deploy has its undo: whatever goes wrong, nothing has to be reconciled.

The list of effects is that of docs/deploying.md. A deploy fails, or is stopped, right before
and right after each; then every undo runs once more, and still nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING
from tasks import context
from tasks.adapters import tidy
from tasks.cleanup import recover
from tasks.replace import abandon, finish_switch, free_claims, undo_stop
from tests.e2e.conftest import installed_engine
from tests.e2e.drill import Caller, Drill, on_processes
from tests.e2e.workplace import Workplace
from tests.fork_server import FAILS, STOPS
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]


class Effect(NamedTuple):
    """What a deploy changes, the points around it, and what its undo is called in the run's log."""

    name: str
    points: tuple[str, ...]
    undo: str
    first: bool = False
    """Whether only a deploy has it that stops the old release first."""


EFFECTS = (
    Effect("a release that is begun", ("release begun",), ""),
    Effect("claims", ("before the claim", "after the claim"), "free the claims"),
    Effect(
        "workloads", ("before the start", "engine started", "first answer"), "stop what was started"
    ),
    Effect("the switch", ("before the record", "after the record"), "end what it has replaced"),
    Effect(
        "the stop of the old release",
        (
            "before the old one makes room",
            "the old one is to stop",
            "the old one is drained",
            "the old one has stopped",
            "the new one started in its place",
        ),
        "start {old} again",
        first=True,
    ),
)
STOPPED = (
    "after the claim",
    "engine started",
    "before the record",
    "after the record",
    "the old one is to stop",
    "the old one is drained",
    "the old one has stopped",
)
"""Points at which a deploy also gets SIGTERM, in the middle of what it does there."""

CASES = [
    (effect, point, how)
    for effect in EFFECTS
    for point in effect.points
    for how in (FAILS, STOPS)
    if how == FAILS or point in STOPPED
]
SWITCHED = "after the record"
NOT_YET = ("before the record", "before the old one makes room", "the old one is to stop")
"""Points at which the effect that is named has not happened: nobody reads that it was undone."""


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Drill]:
    """A place where another model serves throughout: what it uses stays."""
    folder = tmp_path_factory.mktemp("undo")
    place = Workplace(folder, tiny_llama, prefect_server.environment)
    drill = on_processes(place, lifecycle_program)
    place.run("deploy", drill.spec("neighbour"))
    yield drill
    place.close()


@pytest.fixture(autouse=True)
def _same_home(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MOORAGE_HOME", str(drill.place.home))
    monkeypatch.delenv("MOORAGE_LEDGER_URL", raising=False)
    yield
    context._open.cache_clear()


def serving(drill: Drill, name: str, **fields: object) -> ReleaseRow:
    """The release of a name, deployed where there is none."""
    if drill.place.ledger.releases.running(drill.place.named(name)) is None:
        drill.place.run("deploy", drill.spec(name, **fields))
    return drill.serving(name)


@pytest.mark.parametrize(
    ("effect", "point", "how"), CASES, ids=lambda one: getattr(one, "name", one)
)
def test_a_deploy_undoes_what_it_did(drill: Drill, effect: Effect, point: str, how: str) -> None:
    fixed = {"port": drill.place.first_port + 30} if effect.first else {}
    name = "fixed" if effect.first else "tiny"
    old = serving(drill, name, **fixed)
    with Caller(drill.serving("neighbour")) as neighbour, Caller(old) as caller:
        ended = drill.place.run(
            "deploy", drill.spec(name, **fixed), code=None, point=point, how=how
        )
    now, new = drill.serving(name), drill.place.releases(name)[0]
    assert ended.returncode != 0
    assert neighbour.refused == []
    # What was under way when SIGTERM came is done to its end: the switch is made.
    made = point == SWITCHED or (point == "before the record" and how == STOPS)
    assert now.id == (new.id if made else old.id)
    if not effect.first and not made:
        assert caller.refused == []
    if effect.undo and how == FAILS:
        reported = f"undone: {effect.undo.format(old=old.id)}" in ended.stderr + ended.stdout
        assert reported == (point not in NOT_YET)
    nothing_is_left(drill)
    undo_again(old, new)
    undo_again(old, new)
    nothing_is_left(drill)
    assert drill.serving(name).id == now.id


@pytest.mark.parametrize("how", [FAILS, STOPS])
def test_a_second_try_that_does_not_come_to_be_leaves_nothing(
    drill: Drill, lifecycle_program: Path, how: str
) -> None:
    engine = installed_engine(drill.place, lifecycle_program, "holds:1024")
    spec = drill.place.spec("twice", engine=engine)
    for point in ("after the first try is stopped", "before the second try"):
        assert drill.place.run("deploy", spec, code=None, point=point, how=how).returncode != 0
        nothing_is_left(drill)


def nothing_is_left(drill: Drill) -> None:
    """What is held is held by what serves; nothing was reconciled for that."""
    releases = drill.place.ledger.releases
    assert releases.unfinished() == []
    assert releases.not_undone() == []
    drill.leaks_nothing(*releases.in_states(SERVING))


def undo_again(old: ReleaseRow, new: ReleaseRow) -> None:
    """Every undo, in the order in which a saga runs them, and what reconciling does."""
    finish_switch(old, new.id)
    abandon(new.id)
    undo_stop(old, new.id)
    tidy(new.model)
    free_claims(new.id, old)
    for row in (old, new):
        recover(context.ledger().releases.get(row.id))
