"""The current flow run, found without importing Prefect.

Commands that change nothing work without a flow run, and the import of Prefect would take longer
than all their other work. In a process that has not imported Prefect, no flow runs.
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
    """The context of the current flow run; None = there is no flow run."""
    module = sys.modules.get("prefect.context")
    return cast("FlowRunContext | None", module.FlowRunContext.get()) if module else None


def current_flow_run() -> FlowRun | None:
    """The current flow run, as its process knows it; None = there is no flow run."""
    context = flow_run_context()
    return context.flow_run if context else None


def api_url() -> str:
    """The address of Prefect's API; empty if Prefect is not imported, or no API is set."""
    module = sys.modules.get("prefect.settings")
    url = module.get_current_settings().api.url if module else None
    return str(url or "")


def run_logger() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """The logger of the current flow run; outside of a flow run, a logger that drops its lines."""
    if flow_run_context() is None:
        return _NO_LOG
    from prefect import get_run_logger  # noqa: PLC0415  (a flow run has imported it)

    return get_run_logger()
