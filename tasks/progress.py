"""Progress of long steps: to the journal at once, to Prefect's progress artifact now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact

from tasks.artifacts import if_possible
from tasks.journal import Note

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


class Bar:
    """A progress artifact; that Prefect's server does not take it is no reason to fail."""

    def __init__(self, key: str, description: str) -> None:
        self.description = description
        self._key = key
        self._artifact: UUID | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is one to be seen."""
        return self._artifact is not None

    async def move(self, percent: float) -> None:
        """Make it, or move it."""
        await if_possible(self._move(percent), self._key)

    async def _move(self, percent: float) -> None:
        told: dict[str, Any] = {"progress": percent, "description": self.description}
        if self._artifact is None:
            self._artifact = await acreate_progress_artifact(key=self._key, **told)
        else:
            await aupdate_progress_artifact(artifact_id=self._artifact, **told)


async def shown(
    work: Callable[[Progress], Awaitable[R]], note: Note, key: str, description: str
) -> R:
    """Run something long with a progress artifact, which appears once it takes over 2 seconds."""
    progress = Progress(note)
    task = asyncio.ensure_future(work(progress))
    bar = Bar(key, description)
    try:
        while not (await asyncio.wait({task}, timeout=UPDATE_SECONDS))[0]:
            await bar.move(progress.percent)
        result = await task
        if bar.is_there:
            await bar.move(100.0)
        return result
    finally:
        task.cancel()
