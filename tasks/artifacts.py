"""Pages and progress bars of a run, as artifacts in Prefect's UI.

A page that Prefect's API does not take is noted in the journal and fails nothing. Without a flow
run there are no pages, and Prefect is not imported.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from moorage.adapters.prefect.api_errors import server_failure
from moorage.adapters.prefect.current_run import flow_run_context
from moorage.common.failures import Cause, Failure
from tasks.journal import Note, tell

R = TypeVar("R")

PAGE_SECONDS = 30.0
"""How long showing a page may take. Prefect's client retries an absent API for over a minute."""

AFTER_TROUBLE_SECONDS = 3.0
"""How long a page may take after the API refused one or was too slow: it is probably still away."""

_away = threading.Event()
"""Set when Prefect's API did not take the last page."""

UPDATE_SECONDS = 2.0
EVERY_SECONDS = 5.0


async def show_table(
    key: str, rows: list[dict[str, Any]], description: str, *, if_changed: bool = False
) -> None:
    """Show a table; `if_changed` = not if the newest table with this key has the same rows."""

    async def show() -> None:
        from prefect.artifacts import acreate_table_artifact  # noqa: PLC0415  (imports Prefect)

        if not (if_changed and await _newest(key) == json.dumps(rows)):
            await acreate_table_artifact(table=rows, key=key, description=description)

    await if_possible(show, key)


async def show_markdown(key: str, markdown: str, description: str) -> None:
    """Show a document."""

    async def show() -> None:
        from prefect.artifacts import acreate_markdown_artifact  # noqa: PLC0415  (imports Prefect)

        await acreate_markdown_artifact(markdown=markdown, key=key, description=description)

    await if_possible(show, key)


async def _newest(key: str) -> object:
    """The content of the newest artifact with a key; None = there is none."""
    from prefect.client.orchestration import get_client  # noqa: PLC0415  (imports Prefect)
    from prefect.client.schemas.filters import ArtifactCollectionFilter  # noqa: PLC0415  (as above)

    named = ArtifactCollectionFilter.model_validate({"key": {"any_": [key]}})
    async with get_client() as client:
        found = await client.read_latest_artifacts(artifact_filter=named, limit=1)
    return found[0].data if found else None


async def if_possible(show: Callable[[], Awaitable[R]], key: str) -> R | None:
    """Show a page; None without a flow run, or, with a note, where the API does not take it."""
    if flow_run_context() is None:
        return None
    seconds = min(PAGE_SECONDS, AFTER_TROUBLE_SECONDS) if _away.is_set() else PAGE_SECONDS
    try:
        async with asyncio.timeout(seconds):
            shown = await show()
        _away.clear()
        return shown
    except Exception as error:
        if not (isinstance(error, TimeoutError) or server_failure(error)):
            raise
        _away.set()
        tell(f"{key} is not shown: Prefect's API did not take it: {error!r}")
        return None


Progress = Callable[[int, int], None]
"""Takes bytes done and bytes in all; threads of blocking calls may call it, too."""


class Bar:
    """A progress artifact; no error where Prefect's server does not take it."""

    def __init__(self, key: str, description: str) -> None:
        self.description = description
        self._key = key
        self._artifact: UUID | None = None

    async def move(self, percent: float) -> None:
        """Create the artifact or update its percentage."""
        await if_possible(partial(self._move, percent), self._key)

    async def finish(self) -> None:
        """Set the artifact to 100 %, if it was created."""
        if self._artifact:
            await self.move(100.0)

    async def _move(self, percent: float) -> None:
        from prefect.artifacts import (  # noqa: PLC0415  (imports Prefect)
            acreate_progress_artifact,
            aupdate_progress_artifact,
        )

        fields: dict[str, Any] = {"progress": percent, "description": self.description}
        if self._artifact is None:
            self._artifact = await acreate_progress_artifact(key=self._key, **fields)
        else:
            await aupdate_progress_artifact(artifact_id=self._artifact, **fields)


async def with_progress(
    work: Callable[[Progress], Awaitable[R]], note: Note, key: str, description: str
) -> R:
    """Run long work with a progress artifact, which appears after 2 seconds.

    A thread cannot be cancelled: work that outlives its caller ends at its next report.
    """
    bar, percent, left = Bar(key, description), 0.0, False

    def report(done: int, total: int) -> None:
        nonlocal percent
        if left:
            raise Failure(Cause.INTERRUPTED, f"{description}: its caller has left")
        percent = 100.0 * done / total if total else 0.0
        note.progress(done, total)

    task = asyncio.ensure_future(work(report))
    try:
        while not (await asyncio.wait({task}, timeout=UPDATE_SECONDS))[0]:
            await bar.move(percent)
        result = await task
        await bar.finish()
        return result
    finally:
        left = True
        task.cancel()


class LivePage:
    """One markdown artifact and one progress artifact of a run."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._page: UUID | None = None
        self._bar = Bar(f"{key}-progress", "")
        self._written_at, self._writing = float("-inf"), False

    @property
    def is_due(self) -> bool:
        """Whether the last write is long enough ago and no write is in progress."""
        return not self._writing and time.monotonic() - self._written_at >= EVERY_SECONDS

    async def write(self, markdown: str, description: str, percent: float) -> None:
        """Write both artifacts; no error where Prefect's server does not take them."""
        self._writing, self._bar.description = True, description
        try:
            await if_possible(partial(self._write, markdown, description), self._key)
            await self._bar.move(percent)
        finally:
            self._written_at, self._writing = time.monotonic(), False

    async def _write(self, markdown: str, description: str) -> None:
        from prefect.artifacts import acreate_markdown_artifact  # noqa: PLC0415  (imports Prefect)
        from prefect.client.orchestration import get_client  # noqa: PLC0415  (as above)
        from prefect.client.schemas.actions import ArtifactUpdate  # noqa: PLC0415  (as above)

        if self._page is None:
            self._page = await acreate_markdown_artifact(
                markdown=markdown, key=self._key, description=description
            )
            return
        async with get_client() as client:
            changed = ArtifactUpdate(data=markdown, description=description)
            await client.update_artifact(self._page, changed)
