"""Pages of a run: artifacts in Prefect's UI, shown where its API answers.

What a page is about is in the ledger, or runs; so that a page cannot be shown is told, and no
reason to fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any
from uuid import UUID

import httpx
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from tasks.journal import tell

PAGE_SECONDS = 30.0
"""How long a page may take. Prefect's client asks an API that is away for over a minute."""


async def show_table(*, table: list[Any], key: str, description: str) -> None:
    """Show a table, row by row."""
    await _shown(acreate_table_artifact(table=table, key=key, description=description), key)


async def show_markdown(*, markdown: str, key: str, description: str) -> None:
    """Show a document."""
    made = acreate_markdown_artifact(markdown=markdown, key=key, description=description)
    await _shown(made, key)


async def show_progress(
    *, shown: UUID | None, percent: float, key: str, description: str
) -> UUID | None:
    """Show progress, on the page that shows it already if there is one; return that page."""
    if shown is not None:
        await _shown(aupdate_progress_artifact(artifact_id=shown, progress=percent), key)
        return shown
    made = acreate_progress_artifact(progress=percent, key=key, description=description)
    return UUID(str(own)) if (own := await _shown(made, key)) else None


async def _shown(made: Awaitable[Any], key: str) -> Any:
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            return await made
    except (httpx.HTTPError, TimeoutError) as error:
        tell(f"{key} is not shown: Prefect's API did not take it: {error!r}")
        return None
