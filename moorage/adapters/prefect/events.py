"""Prefect events about releases, models and approvals, for automations and for people.

Prefect is imported when an event is emitted; outside of a flow run there is nothing to emit.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from moorage.adapters.ledger.transitions import author
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import Transition

EVENT = "moorage.release"
"""Prefix of the names of release events; the entered state follows."""

DRIFTED = "moorage.model.drifted"
STOPPED_EARLY = "moorage.redeployment.stopped"
ASKED = "moorage.approval.asked"
GRANTED = "moorage.approval.granted"
REFUSED = "moorage.approval.refused"
TIMED_OUT = "moorage.approval.timed-out"


def emit_transition(one: Transition) -> None:
    """Emit `moorage.release.STATE` if a flow run made it: otherwise a server may be missing."""
    if one.flow_run_id:
        change = {"sequence": one.sequence, "from": one.before, "to": one.after}
        change |= {"cause": one.cause, "requested_by": one.requested_by}
        _emit_release_event(one.after, one.release, one.model, one.hosts, change, one.at)


def emit_release_event(what: str, row: ReleaseRow, why: str) -> None:
    """Emit `moorage.release.WHAT` for an event that is not a transition, such as `restarted`."""
    if author().flow_run_id:
        hosts = tuple(dict.fromkeys(workload.host for workload in row.workloads))
        details = {"state": row.state, "cause": why}
        _emit_release_event(what, row.id, row.model, hosts, details)


def emit_model_event(event: str, models: Sequence[str], **payload: Any) -> None:
    """Emit an event about models. `payload` adds fields for automations.

    The resource of the event is the model if there is only one, else the flow run.
    """
    from prefect.runtime import flow_run  # noqa: PLC0415  (imports Prefect)

    one = models[0] if len(models) == 1 else ""
    identity = f"moorage.model.{one}" if one else f"moorage.run.{flow_run.id}"
    name = one or str(flow_run.name)
    fields = {"models": list(models), "flow_run": str(flow_run.id or ""), **payload}
    _emit(
        event,
        resource={"prefect.resource.id": identity, "prefect.resource.name": name},
        related=[_related("model", model) for model in models],
        payload={**fields, "text": f"{', '.join(models)}: {payload.get('why', event)}"},
    )


def _emit_release_event(
    what: str,
    release: str,
    model: str,
    hosts: tuple[str, ...],
    details: dict[str, Any],
    occurred: datetime | None = None,
) -> None:
    _emit(
        f"{EVENT}.{what}",
        resource={
            "prefect.resource.id": f"{EVENT}.{release}",
            "prefect.resource.name": release,
            "moorage.before": str(details.get("from", "")),
            "moorage.state": str(details.get("to") or details["state"]),
        },
        related=[_related("model", model), *(_related("host", host) for host in hosts)],
        payload={"release": release, "model": model, "hosts": list(hosts), **details},
        occurred=occurred,
    )


def _related(role: str, name: str) -> dict[str, str]:
    return {
        "prefect.resource.id": f"moorage.{role}.{name}",
        "prefect.resource.name": name,
        "prefect.resource.role": role,
    }


def _emit(event: str, **content: Any) -> None:
    """Emit an event in the background, and ignore errors.

    Prefect adds the flow run, its flow and its deployment.
    """
    from prefect.events import emit_event  # noqa: PLC0415  (imports Prefect)

    with suppress(Exception):
        emit_event(event=event, **content)
