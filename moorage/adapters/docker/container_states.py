"""Containers as their daemon reports them: those of a ledger, and the states of workloads."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from moorage.adapters.docker.connection import LIMITS, Answer, Daemon, connection
from moorage.adapters.hosts.observation import KILLED, Observation
from moorage.common.strict_json import decode
from moorage.engines.labels import LABEL_HELPER, LABEL_LEDGER, LABEL_MODEL, LABEL_RELEASE
from moorage.engines.workload import Workload
from moorage.operations.reconcile.observed_workload import ObservedWorkload

LIST_SECONDS, OBSERVE_SECONDS = 15, 60
"""How long a whole answer may take; a daemon that unpacks an image is slow."""

RUNS = {"running", "paused", "restarting"}
ENDED = {"exited", "stopped"}
"""Podman reports `stopped` until it has cleaned up after a container."""

EVENTS_SECONDS = 1.0
"""How long after the end of a container its daemon may still report what ended it."""


def list_own(address: str, ledger: str) -> tuple[ObservedWorkload, ...]:
    """The containers of a daemon that carry the label of a ledger, and all helpers.

    Raises:
        Failure: As `connection`.
    """
    return tuple(_listed(one) for one in list_containers(address) if _is_own(one, ledger))


def list_containers(address: str) -> list[dict[str, Any]]:
    """All containers in the daemon's own listing; raises as `connection`."""
    with connection(address, LIST_SECONDS) as daemon:
        return list(daemon.get_list("/containers/json?all=1"))


def observe_containers(address: str, workloads: Iterable[Workload]) -> list[Observation]:
    """The states of containers of one daemon; raises as `connection`."""
    with connection(address, OBSERVE_SECONDS) as daemon:
        return [_observation(daemon, one) for one in workloads]


def belongs(labels: Mapping[str, str], workload: Workload) -> bool:
    """Whether a container's labels are those of a workload: a foreign one may have its name."""
    return (labels.get(LABEL_RELEASE), labels.get(LABEL_LEDGER)) == (
        workload.release,
        workload.ledger,
    )


def _is_own(listed: dict[str, Any], ledger: str) -> bool:
    labels = listed.get("Labels") or {}
    return labels.get(LABEL_LEDGER) == ledger or LABEL_HELPER in labels


def _listed(listed: dict[str, Any]) -> ObservedWorkload:
    labels, state = listed.get("Labels") or {}, listed["State"]
    return ObservedWorkload(
        name=str((listed.get("Names") or ["/?"])[0]).lstrip("/"),
        identity=str(listed["Id"]),
        release=labels.get(LABEL_RELEASE, ""),
        model=labels.get(LABEL_MODEL, ""),
        running=state in RUNS,
        state=f"{_in_words(state)} ({listed['Status']})",
        since=datetime.fromtimestamp(int(listed["Created"]), UTC),
        helper=labels.get(LABEL_HELPER, ""),
        fresh=state == "created",
    )


def _observation(daemon: Daemon, workload: Workload) -> Observation:
    """The state of a workload's container. A foreign container of the same name does not count.

    A container that waits for its restart counts as running, with the exit code of its last run.
    """
    container = daemon.find(f"/containers/{workload.name}/json")
    labels = ((container or Answer()).get("Config") or {}).get("Labels") or {}
    if container is None or not belongs(labels, workload):
        return Observation(running=False, detail="the container is gone")
    state, restarts = container["State"], int(container["RestartCount"])
    running = state["Status"] in RUNS
    killed = bool(state.get("OOMKilled")) or _ran_out_of_memory(daemon, container)
    words = [_in_words(state["Status"])]
    if restarts:
        words.append(f"Docker restarted it {restarts} times")
    if output := "it ran out of memory" if killed else state.get("Error"):
        words.append(output)
    return Observation(
        running=running,
        exit_code=None if running and state["Status"] != "restarting" else state["ExitCode"],
        out_of_memory=killed,
        restarts=restarts,
        detail=": ".join(words),
    )


def _in_words(state: str) -> str:
    return "the container exited" if state in ENDED else f"the container is {state}"


def _ran_out_of_memory(daemon: Daemon, container: dict[str, Any]) -> bool:
    """Whether memory ran out although the daemon has not set `OOMKilled`.

    Docker never sets it when it hears of the end before it hears that memory ran out, as happens on
    a busy host. The events of a kill that nobody asked the daemon for have an `oom`, or none and no
    request. A daemon forgets old events: without the end, the request may be forgotten, too.
    """
    state = container["State"]
    if state["Status"] not in ENDED or state["ExitCode"] != KILLED:
        return False
    actions = _actions(daemon, container)
    return "oom" in actions or ("die" in actions and "kill" not in actions)


def _actions(daemon: Daemon, container: dict[str, Any]) -> set[str]:
    """Names of the events of a container's last run; empty if the daemon keeps no events."""
    state = container["State"]
    try:
        ended = datetime.fromisoformat(state["FinishedAt"]).timestamp()
        query = {
            "since": f"{datetime.fromisoformat(state['StartedAt']).timestamp():.6f}",
            "until": f"{ended + EVENTS_SECONDS:.6f}",
            "filters": json.dumps({"container": [container["Id"]]}),
        }
        events = daemon.get_body(f"/events?{urlencode(query)}")
        return {decode(line, LIMITS).get("Action") for line in events.splitlines()}
    except (ValueError, KeyError, AttributeError):
        return set()
