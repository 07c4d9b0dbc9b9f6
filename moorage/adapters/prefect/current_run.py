"""The flow run that the code is part of, asked without importing Prefect.

Commands that change nothing work without a flow run, and importing Prefect takes them longer than
all else. Where it is not imported, no flow runs.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun
    from prefect.context import FlowRunContext

_NO_LOG = logging.Logger("no flow run")
_NO_LOG.addHandler(logging.NullHandler())


def flow_run_context() -> FlowRunContext | None:
    """The context of the flow run that this is part of; None = of none."""
    module = sys.modules.get("prefect.context")
    return cast("FlowRunContext | None", module.FlowRunContext.get()) if module else None


def current_flow_run() -> FlowRun | None:
    """The flow run that this is part of, as its process knows it; None = of none."""
    context = flow_run_context()
    return context.flow_run if context else None


def api_url() -> str:
    """The address of Prefect's API; empty where Prefect is not imported, or has none."""
    module = sys.modules.get("prefect.settings")
    url = module.get_current_settings().api.url if module else None
    return str(url or "")


def run_logger() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """The log of the flow run; outside of one, a logger that drops its lines."""
    if flow_run_context() is None:
        return _NO_LOG
    from prefect import get_run_logger  # noqa: PLC0415  (imported by whoever runs the flow)

    return get_run_logger()
