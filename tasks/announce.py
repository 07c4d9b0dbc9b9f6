"""Each transition as a Prefect event, for automations and for those who watch."""

from __future__ import annotations

from prefect.events import emit_event

from moorage.timeline import Transition

EVENT = "moorage.release"
"""How the names of the events begin; the state that was entered follows."""


def announce(transition: Transition) -> None:
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


def _emit(one: Transition) -> None:
    emit_event(
        event=f"{EVENT}.{one.after}",
        occurred=one.at,
        resource={
            "prefect.resource.id": f"{EVENT}.{one.release}",
            "prefect.resource.name": one.release,
            "moorage.state": one.after,
            "moorage.before": one.before,
        },
        related=[
            _related("model", one.model),
            *(_related("host", host) for host in one.hosts),
        ],
        payload={
            "release": one.release,
            "model": one.model,
            "sequence": one.sequence,
            "from": one.before,
            "to": one.after,
            "cause": one.cause,
            "hosts": list(one.hosts),
        },
    )


def _related(role: str, name: str) -> dict[str, str]:
    return {
        "prefect.resource.id": f"moorage.{role}.{name}",
        "prefect.resource.name": name,
        "prefect.resource.role": role,
    }
