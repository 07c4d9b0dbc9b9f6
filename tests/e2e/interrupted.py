"""The points of the flows at which a command can kill itself, without any chance to clean up."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from typing import Any

POINTS: dict[str, tuple[str, str, str]] = {
    "early check": ("before", "flows.deploy_model", "serving"),
    "release begun": ("after", "moorage.adapters.ledger.releases", "Releases.begin"),
    "analysing": ("after", "moorage.adapters.ledger.releases", "Releases.move"),
    "resolve": ("before", "tasks.analyze", "resolve_one"),
    "derive": ("before", "tasks.analyze", "derive_profile"),
    "analysed": ("after", "moorage.adapters.ledger.releases", "Releases.pin"),
    "survey": ("before", "tasks.survey", "survey_hosts"),
    "before the claim": ("before", "moorage.adapters.ledger.claims", "Claims.commit"),
    "after the claim": ("after", "moorage.adapters.ledger.claims", "Claims.commit"),
    "image": ("before", "tasks.image", "wanted_image"),
    "stage": ("before", "tasks.stage", "step"),
    "plan": ("before", "flows.deploy_model", "plan_release"),
    "before the start": ("before", "tasks.launch", "start"),
    "workload written down": ("after", "moorage.adapters.ledger.releases", "Workloads.begin"),
    "engine started": ("after", "tasks.workloads", "runtime_for.start"),
    "verify": ("before", "tasks.verify", "ask"),
    "first answer": ("after", "tasks.verify", "judge"),
    "measure": ("before", "tasks.measure", "runtime_for"),
    "facts": ("before", "tasks.measure", "ask"),
    "before the record": ("before", "moorage.adapters.ledger.releases", "Releases.take_over"),
    "after the record": ("after", "moorage.adapters.ledger.releases", "Releases.take_over"),
    "old one stopping": ("before", "flows.deploy_model", "end_superseded"),
    "old one drained": ("before", "tasks.replace", "end_release"),
    "old one stopped": ("after", "tasks.stopping", "stop_all"),
    "old one closed": ("after", "moorage.adapters.ledger.releases", "Releases.end"),
    "before it is kept what was measured": ("before", "tasks.release", "record_measurements"),
}
"""Points in the order of the flow: before or after a call."""

SECOND_TRY: dict[str, tuple[str, str, str]] = {
    "before the first try is stopped": ("before", "tasks.launch", "stop"),
    "after the first try is stopped": ("after", "tasks.launch", "stop"),
    "before the second try": ("before", "flows.deploy_model", "with_correction"),
}
"""Points that only a deploy passes whose first try fails and is corrected."""


STOP_FIRST: dict[str, tuple[str, str, str]] = {
    "before the old one makes room": ("before", "flows.deploy_model", "stop_for"),
    "the old one is to stop": ("before", "tasks.stopping", "drain"),
    "the old one is drained": ("before", "tasks.replace", "_stop_workloads"),
    "the old one has stopped": ("after", "tasks.replace", "_stop_workloads"),
    "the new one started in its place": ("after", "tasks.workloads", "runtime_for.start"),
}
"""Points that only a deploy passes which has to stop the old release first."""

RETIRING: dict[str, tuple[str, str, str]] = {
    "retiring": ("after", "moorage.adapters.ledger.releases", "Releases.move"),
    "retiring: drained": ("before", "tasks.stopping", "end_release"),
    "retiring: stopped": ("after", "tasks.stopping", "stop_all"),
}
"""Points of a retire."""

UNLOADING: dict[str, tuple[str, str, str]] = {
    "unloading": ("after", "moorage.adapters.ledger.releases", "Releases.move"),
    "unloading: drained": ("before", "tasks.sleep", "end_drained"),
    "unloading: stopped": ("after", "tasks.stopping", "stop_all"),
}
"""Points at which a model falls asleep."""

LOADING: dict[str, tuple[str, str, str]] = {
    "loading: claimed": ("after", "moorage.adapters.ledger.claims", "Claims.commit"),
    "loading: started": ("after", "tasks.workloads", "runtime_for.start"),
    "loading: answered": (
        "before",
        "moorage.adapters.gateway.followed_routes",
        "FollowedRoutes.reopen",
    ),
}
"""Points at which a model wakes."""

ENGINE_SLEEP: dict[str, tuple[str, str, str]] = {
    "its engines sleep": ("before", "tasks.sleep", "claims_asleep"),
    "its engines are awake": ("before", "tasks.sleep", "verify"),
}
"""Points at which a model falls asleep and wakes whose engines do not end."""

DOWNLOADING: dict[str, tuple[str, str, str]] = {
    "a file has come": ("before", "moorage.adapters.sources.store", "ModelStore.accept"),
    "a file is verified": ("after", "moorage.adapters.sources.store", "ModelStore.accept"),
    "all files are verified": ("before", "moorage.adapters.sources.store", "ModelStore.publish"),
}
"""Points of a deploy that has to download its model."""

HALFWAY: dict[str, tuple[str, str, str]] = {
    "the old one is told to end": ("after", "moorage.adapters.hosts.processes", "_signal"),
    "the new one is forked": (
        "before",
        "moorage.adapters.hosts.processes",
        "ProcessRuntime._await_state",
    ),
}
"""Points inside the stop and the start of a process, of a deploy that stops the old one first."""

RECONCILING: dict[str, tuple[str, str, str]] = {
    "undoing: given up": ("after", "moorage.adapters.ledger.releases", "Releases.give_up"),
    "bringing back: started": (
        "before",
        "moorage.adapters.gateway.followed_routes",
        "FollowedRoutes.reopen",
    ),
    "restarting: stopped": ("before", "tasks.restart", "start_part"),
}
"""Points of a reconcile, which is killed itself while it puts right what another kill has left."""

EVERY_POINT = {
    **POINTS,
    **SECOND_TRY,
    **STOP_FIRST,
    **RETIRING,
    **UNLOADING,
    **LOADING,
    **ENGINE_SLEEP,
    **DOWNLOADING,
    **HALFWAY,
    **RECONCILING,
}


def arm(point: str, happens: Callable[[], None] | None = None) -> None:
    """Have something happen once this process comes to a point.

    Args:
        point: One of `EVERY_POINT`.
        happens: What; without it, this process kills itself.
    """
    when, module, name = EVERY_POINT[point]
    owner: Any = importlib.import_module(module)
    event = _Once(happens or _die)
    if name == "runtime_for.start":
        choose = owner.runtime_for
        owner.runtime_for = lambda *args: _Started(choose(*args), event)
        return
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, _eventful(getattr(owner, last), when, event))


class _Once:
    """Something that happens one time at most."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens, self._happened = happens, False

    def __call__(self) -> None:
        if not self._happened:
            self._happened = True
            self._happens()


def _eventful(function: Callable[..., Any], when: str, event: _Once) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            event()
        result = function(*args, **kwargs)
        if when == "after":
            event()
        return result

    return wrapped


class _Started:
    """A runtime, after whose start something happens."""

    def __init__(self, runtime: Any, event: _Once) -> None:
        self._runtime, self._event = runtime, event

    def start(self, *args: Any) -> Any:
        result = self._runtime.start(*args)
        self._event()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
