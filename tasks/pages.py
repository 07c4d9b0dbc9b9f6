"""Pages of a run: artifacts in Prefect's UI, shown where its API answers.

What a page is about is in the ledger, or runs; so that a page cannot be shown is told, and no
reason to fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from tasks.journal import tell
from tasks.server import is_server_trouble

R = TypeVar("R")

PAGE_SECONDS = 30.0
"""How long a page may take. Prefect's client asks an API that is away for over a minute."""


async def show_table(key: str, rows: list[dict[str, Any]], description: str) -> None:
    """Show a table, row by row."""
    await if_possible(acreate_table_artifact(table=rows, key=key, description=description), key)


async def show_markdown(key: str, markdown: str, description: str) -> None:
    """Show a document."""
    made = acreate_markdown_artifact(markdown=markdown, key=key, description=description)
    await if_possible(made, key)


async def if_possible(showing: Awaitable[R], key: str) -> R | None:
    """Show a page; None, and a note, where Prefect's API does not take it."""
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            return await showing
    except Exception as error:
        if not (isinstance(error, TimeoutError) or is_server_trouble(error)):
            raise
        tell(f"{key} is not shown: Prefect's API did not take it: {error!r}")
        return None
