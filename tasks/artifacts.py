"""Artifacts: what a person reads in the Prefect UI. The ledger has it all the same."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from prefect import get_run_logger
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.exceptions import MissingContextError

from tasks.server import is_server_trouble


async def show_markdown(key: str, markdown: str, description: str) -> None:
    """Publish a page."""
    page = acreate_markdown_artifact(markdown=markdown, key=key, description=description)
    await if_possible(page, key)


async def show_table(key: str, rows: list[dict[str, Any]], description: str) -> None:
    """Publish a table."""
    await if_possible(acreate_table_artifact(table=rows, key=key, description=description), key)


async def if_possible(writing: Awaitable[Any], key: str) -> None:
    """Write an artifact; that Prefect's server does not take it is told, and no reason to fail.

    What serves would be ended, or what failed would not be told why, for the sake of a page.
    """
    try:
        await writing
    except Exception as error:
        if not is_server_trouble(error):
            raise
        with suppress(MissingContextError):
            get_run_logger().warning("artifact %s could not be written: %s", key, error)
