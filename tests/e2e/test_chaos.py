"""A random life: operations side by side, kills at random, and nothing is ever held twice."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import psutil
import pytest

from moorage.inventory.claims import Resource
from tests.e2e.chaos import MEMORY_GIB, MODELS, NODES, Kind, drawn, write_fleet
from tests.e2e.crew import Crew, Done
from tests.e2e.invariants import broken, left_over
from tests.e2e.watch import Watch
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.docker, pytest.mark.server]

SEED = int(os.environ.get("MOORAGE_CHAOS_SEED", 7))
OPERATIONS = int(os.environ.get("MOORAGE_CHAOS_OPERATIONS", "60"))
HANDS = 8
EVERY = 25
"""So many operations apart the fleet is reconciled."""

ROOMS = {
    Resource.ACCELERATOR: MEMORY_GIB << 30,
    Resource.RAM: 1 << 30,
    Resource.CORES: 10**6,
    Resource.PORT: 1,
}
A_MINUTE = 60.0
ROUNDS = 4
"""Looks at most until nothing waits for its next start any more."""

IN_ORDER = {
    *("completed", "unchanged", "killed", "done", "nothing ran", "it ended before"),
    *("no-fit", "claim-conflict", "port-taken", "interrupted"),
    *("unknown-release", "cannot-roll-back"),
}
"""What may become of any operation: done, killed, or refused for want of room or of a release."""

WHEN_IT_DIES = {"engine-exited", "engine-unsupported-model", "load-timeout", "bad-answer"}
"""What may become of one whose engine dies, or is killed by an accident."""


class Chaos:
    """Everything that belongs to one random life."""

    def __init__(self, place: Workplace, image: str) -> None:
        self.place, self.image = place, image
        self.deeds: Counter[str] = Counter()
        self.reconciles = 0

    def reconcile(self) -> set[str]:
        """Reconcile once; releases that are to be started again later."""
        fleet = self.place.folder / "fleet.yaml"
        answer = self.place.json("reconcile", "--fleet", fleet, code=None)  # a repair may fail
        self.reconciles += 1
        self.deeds.update(one["deed"] for one in answer["actions"] if one["done"])
        return {one["release"] for one in answer["actions"] if not one["done"]}

    def wait_for(self, crew: Crew, count: int) -> None:
        """Wait until so many operations have ended; where a minute passes, reconcile as ever."""
        while not crew.wait_for(count, A_MINUTE):
            self.reconcile()

    def named(self, models: Iterable[str]) -> list[str]:
        """Models by their names in specs."""
        return [self.place.named(model) for model in models]


@pytest.fixture
def nodes() -> Iterator[None]:
    """Nodes that Docker hands out as accelerators; they are `/dev/null` by other names."""
    made = []
    try:
        for node in map(Path, NODES):
            if not node.exists():
                node.symlink_to("null")
                made.append(node)
    except OSError as error:
        pytest.skip(f"device nodes cannot be made here: {error}")
    yield
    for node in made:
        node.unlink(missing_ok=True)


@pytest.fixture
def chaos(
    tmp_path: Path,
    tiny_llama: Path,
    prefect_server: PrefectServer,
    lifecycle_image: str,
    nodes: None,  # noqa: ARG001
) -> Iterator[Chaos]:
    environment = {"MOORAGE_ORPHAN_SECONDS": "1", "MOORAGE_PROBE_SECONDS": "5"}
    place = Workplace(tmp_path, tiny_llama, {**prefect_server.environment, **environment})
    write_fleet(tmp_path / "fleet.yaml", place.first_port, place.first_port + 39)
    yield Chaos(place, lifecycle_image)
    place.close()


def test_nothing_is_held_twice_and_nothing_is_lost(
    chaos: Chaos, request: pytest.FixtureRequest
) -> None:
    place, dice, began = chaos.place, random.Random(SEED), time.monotonic()
    operations = drawn(SEED, OPERATIONS)
    wrong: list[str] = []
    with (
        Watch(place.ledger, ROOMS) as watch,
        Crew(place, chaos.image, operations, HANDS) as crew,
    ):
        for count in range(EVERY, OPERATIONS, EVERY):
            chaos.wait_for(crew, count)
            some = dice.sample(list(MODELS), len(MODELS) // 2)
            with crew.resting(some):
                wrong += broken(place, chaos.named(some), chaos.reconcile())
            # What was started again answers by now: the next survey lets others start there.
            chaos.reconcile()
        chaos.wait_for(crew, OPERATIONS)
        for _ in range(ROUNDS):
            if not (waits := chaos.reconcile()):
                break
            time.sleep(10)
        wrong += [*broken(place, chaos.named(MODELS), waits), *left_over(place)]
    show(request, table(crew.done, chaos, watch, time.monotonic() - began))
    assert watch.broke is None
    assert watch.twice == set()
    assert watch.most > MEMORY_GIB << 30
    assert wrong == []
    hit = {one.operation.model for one in crew.done if is_accident(one)}
    strange = [one for one in crew.done if not is_in_order(one, hit)]
    assert not strange, "\n\n".join(
        f"{one.operation}: {one.outcome}\n{one.output}" for one in strange
    )
    for name in chaos.named(MODELS):
        place.run("retire", name, code=None)
    assert place.is_clean()


def is_accident(done: Done) -> bool:
    """Whether a container was killed behind our back."""
    return done.operation.kind is Kind.ACCIDENT and done.outcome == "done"


def is_in_order(done: Done, hit: Collection[str]) -> bool:
    """Whether this may become of an operation.

    Args:
        done: What became of it.
        hit: Models of which a container was killed at some time.
    """
    own = done.operation
    may_die = own.behaviour != "ok" or own.model in hit
    return done.outcome in (IN_ORDER | WHEN_IT_DIES if may_die else IN_ORDER)


def table(done: list[Done], chaos: Chaos, watch: Watch, seconds: float) -> str:
    """What was done, by kind and outcome."""
    kinds = {kind: [one for one in done if one.operation.kind is kind] for kind in Kind}
    lines = [f"chaos of seed {SEED}"]
    for kind, own in kinds.items():
        outcomes = Counter(one.outcome for one in own).most_common()
        answer = ", ".join(f"{count} {outcome}" for outcome, count in outcomes)
        lines.append(f"{kind:<30}{len(own):>4}  {answer}")
    deeds = ", ".join(f"{count} {kind}" for kind, count in chaos.deeds.most_common())
    lines.append(f"{'reconcile':<30}{chaos.reconciles:>4}  {deeds}")
    lines.append(f"{watch.looks} looks, {len(watch.twice)} held twice")
    lines.append(f"{seconds:.0f} s, {cpu_seconds():.0f} s of processor time")
    return "\n" + "\n".join(lines) + "\n"


def cpu_seconds() -> float:
    """What this process and all that it has started have taken."""
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in (own, *own.children(recursive=True)))


def show(request: pytest.FixtureRequest, text: str) -> None:
    """Print it, whatever pytest captures."""
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        reporter.write(text)
