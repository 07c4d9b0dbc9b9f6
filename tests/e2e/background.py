"""A thread that works during a test until its block ends."""

from __future__ import annotations

import threading
from typing import Self


class Background(threading.Thread):
    """Runs from the beginning of its block to the end; `run` looks at `ended`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()
