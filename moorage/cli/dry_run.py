"""Dry runs from the command line."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

from moorage.cli.interruption import cancelled_by_sigterm, nothing_begun
from moorage.cli.step_printer import printed_steps
from moorage.operations.flow_result import FlowResult
from moorage.policy.request import Channel


def call_dry_run(name: str, *parameters: Any, as_json: bool) -> FlowResult[Any]:
    """Call `flows.dry_run.NAME` with its parameters, without flow run, server or Prefect."""
    with nothing_begun(as_json=as_json):
        from flows import dry_run  # noqa: PLC0415  (imports all steps)
        from tasks.journal import failure_of, journal, listening  # noqa: PLC0415  (as above)
        from tasks.policy import channel_scope  # noqa: PLC0415  (as above)

    async def main() -> FlowResult[Any]:
        with cancelled_by_sigterm(), journal() as opened:
            context = dry_run.RunContext(opened, "", datetime.now(UTC))
            try:
                return cast("FlowResult[Any]", await getattr(dry_run, name)(context, *parameters))
            except Exception as error:
                if (failure := failure_of(error)) is None:
                    raise
                raise failure from None

    with channel_scope(Channel.CLI):
        if as_json:
            return asyncio.run(main())
        with printed_steps() as printer, listening(printer):
            return asyncio.run(main())
