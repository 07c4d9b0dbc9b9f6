"""Prefect events about releases, models and approvals, for automations and for those who watch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from prefect.events import emit_event
from prefect.runtime import flow_run

from moorage.adapters.ledger.transitions import author
from moorage.releases.release import ReleaseRow
from moorage.releases.states import Transition

EVENT = "moorage.release"
"""How the names of the events begin; the state that was entered follows."""

DRIFTED = "moorage.model.drifted"
STOPPED_EARLY = "moorage.redeployment.stopped"
ASKED = "moorage.approval.asked"
GRANTED = "moorage.approval.granted"
REFUSED = "moorage.approval.refused"
TIMED_OUT = "moorage.approval.timed-out"


def emit_transition(transition: Transition) -> None:
    """Emit `moorage.release.STATE`; what goes wrong with that is no reason to fail.

    Prefect sends it in the background, and adds the flow run, its flow and its deployment.

    Args:
        transition: What was committed.
    """
    if not transition.flow_run_id:
        return  # outside of a run there may be no server to tell
    try:
        _emit(transition)
    except Exception:  # the release is what the ledger says, whoever hears of it
        return


def emit_release_event(what: str, row: ReleaseRow, why: str) -> None:
    """Emit `moorage.release.WHAT` for what is no transition, such as `restarted`.

    Args:
        what: What happened to the release.
        row: The release.
        why: In words.
    """
    flow_run_id = author().flow_run_id
    if not flow_run_id:
        return
    hosts = tuple(dict.fromkeys(workload.host for workload in row.workloads))
    try:
        _send(what, datetime.now(UTC), row.id, row.model, hosts, {"state": row.state, "cause": why})
    except Exception:  # as above
        return


def _emit(one: Transition) -> None:
    changed = {
        "sequence": one.sequence,
        "from": one.before,
        "to": one.after,
        "cause": one.cause,
        "requested_by": one.requested_by,
    }
    _send(one.after, one.at, one.release, one.model, one.hosts, changed)


def _send(
    what: str,
    at: datetime,
    release: str,
    model: str,
    hosts: tuple[str, ...],
    more: dict[str, Any],
) -> None:
    emit_event(
        event=f"{EVENT}.{what}",
        occurred=at,
        resource={
            "prefect.resource.id": f"{EVENT}.{release}",
            "prefect.resource.name": release,
            "moorage.state": str(more.get("to") or more["state"]),
            "moorage.before": str(more.get("from", "")),
        },
        related=[_related("model", model), *(_related("host", host) for host in hosts)],
        payload={"release": release, "model": model, "hosts": list(hosts), **more},
    )


def _related(role: str, name: str) -> dict[str, str]:
    return {
        "prefect.resource.id": f"moorage.{role}.{name}",
        "prefect.resource.name": name,
        "prefect.resource.role": role,
    }


def emit_model_event(event: str, models: Sequence[str], **payload: Any) -> None:
    """Emit an event about models; what goes wrong with that is no reason to fail.

    Its resource is the model where it is one, else the flow run.

    Args:
        event: One of the names above.
        models: Names of the models that it is about.
        payload: What an automation may want to tell.
    """
    one = models[0] if len(models) == 1 else ""
    identity = f"moorage.model.{one}" if one else f"moorage.run.{flow_run.id}"
    fields = {"models": list(models), "flow_run": str(flow_run.id or ""), **payload}
    try:
        emit_event(
            event=event,
            resource={
                "prefect.resource.id": identity,
                "prefect.resource.name": one or str(flow_run.name),
            },
            related=[_related("model", model) for model in models],
            payload={**fields, "text": f"{', '.join(models)}: {payload.get('why', event)}"},
        )
    except Exception:  # what is done does not depend on who hears of it
        return
