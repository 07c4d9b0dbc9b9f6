"""Progress of long steps: to the journal at once, to Prefect's progress artifact now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from tasks.journal import Note
from tasks.pages import show_progress

R = TypeVar("R")
UPDATE_SECONDS = 2.0


class Progress:
    """Bytes done of bytes in all, as a call that blocks reports them from its thread."""

    def __init__(self, note: Note) -> None:
        self.done, self.total = 0, 0
        self._note = note

    def __call__(self, done: int, total: int) -> None:
        """Take a report."""
        self.done, self.total = done, total
        self._note.progress(done, total)

    @property
    def percent(self) -> float:
        """Share that is done, 0 to 100."""
        return 100.0 * self.done / self.total if self.total else 0.0


async def shown(
    work: Callable[[Progress], Awaitable[R]], note: Note, key: str, description: str
) -> R:
    """Run something long with a progress artifact, which appears once it takes over 2 seconds."""
    progress = Progress(note)
    task = asyncio.ensure_future(work(progress))
    page: UUID | None = None
    try:
        while not (await asyncio.wait({task}, timeout=UPDATE_SECONDS))[0]:
            page = await show_progress(key, page, progress.percent, description)
        result = await task
        if page is not None:
            await show_progress(key, page, 100.0, description)
        return result
    finally:
        task.cancel()
