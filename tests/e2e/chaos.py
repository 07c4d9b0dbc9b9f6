"""Random operations on a fleet, and what is killed meanwhile."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.e2e.interrupted import POINTS, RETIRING, STOP_FIRST

ACCELERATORS = 4
MEMORY_GIB = 80
NODES = ("/dev/itrctl", *(f"/dev/iluvatar{index}" for index in range(ACCELERATORS)))
"""What Docker hands out for accelerators of type `corex`: the node that all need, and their own."""

FLEET = """\
hosts:
- name: local
  ports: {low}-{high}
  runtimes: [docker]
  ram: 1GiB
  accelerators: [{accelerators}]
"""

SHARED_PORT = 39
"""Two models want the same port: this one of the range."""

WORDS = "--host 0.0.0.0 --port {{port}} --served-model-name {{model_name}}"
PATIENT, SHORT = 120, 4
"""Seconds until the first answer, of those that will answer, and of those that never will."""


class Kind(StrEnum):
    """What is done."""

    DEPLOY = "deploy a change"
    SURGE = "deploy a change by surge"
    STOP_FIRST = "deploy a change, stop first"
    CANARY = "deploy a change by canary"
    AGAIN = "deploy the same again"
    FAILING = "deploy what dies"
    SILENT = "deploy what never answers"
    RETIRE = "retire"
    ROLLBACK = "roll back"
    ACCIDENT = "kill a container"


WEIGHTS = {
    Kind.DEPLOY: 30,
    Kind.SURGE: 8,
    Kind.STOP_FIRST: 10,
    Kind.CANARY: 4,
    Kind.AGAIN: 8,
    Kind.FAILING: 8,
    Kind.SILENT: 2,
    Kind.RETIRE: 16,
    Kind.ROLLBACK: 8,
    Kind.ACCIDENT: 6,
}
BEHAVIOURS = {Kind.FAILING: ("die", "exit0", "unhealthy"), Kind.SILENT: ("deaf", "mute")}
STRATEGIES = {
    Kind.SURGE: "surge",
    Kind.STOP_FIRST: "stop-first",
    Kind.CANARY: "canary",
}
KILLED, TERMINATED = 0.25, 0.06
"""Shares of the commands that get a SIGKILL and a SIGTERM."""


def _on(count: int, gib: int, replicas: int = 1) -> dict[str, Any]:
    engine = {"CLAIM": str(gib << 30)}
    placement = {"accelerators": count, "ram": "32MiB"}
    return {
        "env": engine,
        "memory": {"claim": f"{gib}GiB"},
        "placement": placement,
        "replicas": replicas,
    }


def _on_cpu(ram: str, **more: Any) -> dict[str, Any]:
    return {"placement": {"accelerators": 0, "ram": ram}, **more}


MODELS: dict[str, dict[str, Any]] = {
    "ant": _on(1, 60),
    "bee": _on(1, 60),
    "cow": _on(1, 30, replicas=2),
    "dog": _on(2, 30),
    "elk": _on(1, 50),
    "fox": _on_cpu("64MiB", port=SHARED_PORT),
    "gnu": _on_cpu("64MiB", port=SHARED_PORT),
    "hen": _on_cpu("250MiB"),
    "ibis": _on_cpu("64MiB", replicas=2),
}
"""They do not all fit twice, so that some have to stop first, and some are refused."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that is done.

    Attributes:
        number: Its place among all.
        kind: What it is.
        model: Whom it is about.
        behaviour: Of the engine that it starts.
        point: Point of the flow at which it kills itself; empty = none.
        signals: Signals that it gets, each so many seconds after its start.
        luck: Chooses a victim.
    """

    number: int
    kind: Kind
    model: str
    behaviour: str = "ok"
    point: str = ""
    signals: dict[int, float] = field(default_factory=dict)
    luck: float = 0.0

    @property
    def is_hurt(self) -> bool:
        """Whether it is not let come to its end."""
        return bool(self.point or self.signals)

    def spec(self, image: str, low: int) -> dict[str, Any]:
        """Fields of its spec, but for name and source.

        Args:
            image: Of the engine.
            low: First port of the range.
        """
        fields = dict(MODELS[self.model])
        number = 0 if self.kind is Kind.AGAIN else self.number
        env = {"LIFECYCLE": self.behaviour, "ROUND": str(number), **fields.pop("env", {})}
        if "port" in fields:
            fields["port"] += low
        strategy = STRATEGIES.get(self.kind, "auto")
        seconds = PATIENT if self.behaviour == "ok" else SHORT
        return {
            **fields,
            "readiness": {"deadlines": {"load_seconds": seconds, "warm_up_seconds": seconds}},
            "engine": {
                "name": "custom",
                "runtime": "docker",
                "image": image,
                "command": ["vllm", "{{model_path}}", *WORDS.split()],
                "shm": "64MiB",
                "env": env,
            },
            "replace": {"strategy": strategy, "linger_seconds": 0, "canary_seconds": 0},
        }


def drawn(seed: int, count: int) -> tuple[Operation, ...]:
    """The operations that a seed stands for."""
    dice = random.Random(seed)
    kinds = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
    return tuple(_operation(dice, number, kind) for number, kind in enumerate(kinds, start=1))


def _operation(dice: random.Random, number: int, kind: Kind) -> Operation:
    point, signals = "", dict[int, float]()
    fate = dice.random()
    if fate < KILLED / 2:
        point = dice.choice(_points(kind))
    elif fate < KILLED:
        signals[signal.SIGKILL] = dice.uniform(0.1, 4)
    elif fate < KILLED + TERMINATED:
        signals[signal.SIGTERM] = dice.uniform(0.1, 4)
    return Operation(
        number,
        kind,
        dice.choice(list(MODELS)),
        dice.choice(BEHAVIOURS.get(kind, ("ok",))),
        point,
        signals,
        dice.random(),
    )


def _points(kind: Kind) -> list[str]:
    if kind is Kind.RETIRE:
        return list(RETIRING)
    return [*POINTS, *(STOP_FIRST if kind is Kind.STOP_FIRST else ())]


def write_fleet(path: Path, low: int, high: int) -> None:
    """Write a fleet of one host with accelerators that Docker hands out as device nodes."""
    one = "{{type: corex, index: {index}, memory: {gib}GiB}}"
    listed = (one.format(index=index, gib=MEMORY_GIB) for index in range(ACCELERATORS))
    path.write_text(FLEET.format(low=low, high=high, accelerators=", ".join(listed)))
