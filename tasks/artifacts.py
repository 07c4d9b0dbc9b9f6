"""Pages of a run: artifacts in Prefect's UI, shown where its API answers.

What a page is about is in the ledger, or runs; so that a page cannot be shown is told, and no
reason to fail.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any, TypeVar

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from moorage.adapters.prefect.api_errors import server_failure
from tasks.journal import tell

R = TypeVar("R")

PAGE_SECONDS = 30.0
"""How long a page may take. Prefect's client asks an API that is away for over a minute."""

AFTER_TROUBLE_SECONDS = 3.0
"""How long a page may take after one that was not taken in time: the API is still away."""

_away = threading.Event()
"""Set while Prefect's API does not take pages."""


async def show_table(key: str, rows: list[dict[str, Any]], description: str) -> None:
    """Show a table, row by row."""
    await if_possible(acreate_table_artifact(table=rows, key=key, description=description), key)


async def show_markdown(key: str, markdown: str, description: str) -> None:
    """Show a document."""
    made = acreate_markdown_artifact(markdown=markdown, key=key, description=description)
    await if_possible(made, key)


async def if_possible(showing: Awaitable[R], key: str) -> R | None:
    """Show a page; None, and a note, where Prefect's API does not take it."""
    seconds = min(PAGE_SECONDS, AFTER_TROUBLE_SECONDS) if _away.is_set() else PAGE_SECONDS
    try:
        async with asyncio.timeout(seconds):
            shown = await showing
        _away.clear()
        return shown
    except Exception as error:
        if not (isinstance(error, TimeoutError) or server_failure(error)):
            raise
        _away.set()
        tell(f"{key} is not shown: Prefect's API did not take it: {error!r}")
        return None
