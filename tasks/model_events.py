"""Events about models and approvals, for automations and for those who watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.events import emit_event
from prefect.runtime import flow_run

DRIFTED = "moorage.model.drifted"
STOPPED_EARLY = "moorage.redeployment.stopped"
ASKED = "moorage.approval.asked"
GRANTED = "moorage.approval.granted"
REFUSED = "moorage.approval.refused"
TIMED_OUT = "moorage.approval.timed-out"


def signal(event: str, models: Sequence[str], **payload: Any) -> None:
    """Emit an event about models; what goes wrong with that is no reason to fail.

    Its resource is the model where it is one, else the flow run.

    Args:
        event: One of the names above.
        models: Names of the models that it is about.
        payload: What an automation may want to tell.
    """
    one = models[0] if len(models) == 1 else ""
    identity = f"moorage.model.{one}" if one else f"moorage.run.{flow_run.id}"
    told = {"models": list(models), "flow_run": str(flow_run.id or ""), **payload}
    try:
        emit_event(
            event=event,
            resource={
                "prefect.resource.id": identity,
                "prefect.resource.name": one or str(flow_run.name),
            },
            related=[_related(model) for model in models],
            payload={**told, "text": f"{', '.join(models)}: {payload.get('why', event)}"},
        )
    except Exception:  # what is done does not depend on who hears of it
        return


def _related(model: str) -> dict[str, str]:
    return {
        "prefect.resource.id": f"moorage.model.{model}",
        "prefect.resource.name": model,
        "prefect.resource.role": "model",
    }
