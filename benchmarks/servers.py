"""A team's server for a benchmark: PostgreSQL with a Prefect server, as `make up` starts them."""

from __future__ import annotations

import os
from pathlib import Path

from scripts.team.__main__ import down, programs, up
from scripts.team.place import Place

SERVER_PORT, POSTGRES_PORT = 14278, 15433


class Servers:
    """The two running servers.

    Args:
        folder: Folder for their data; PostgreSQL's own user has to be able to enter it.
    """

    def __init__(self, folder: Path) -> None:
        self._place = Place(folder / "team", SERVER_PORT, POSTGRES_PORT)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")
        up(self._place, serve=False)
        base = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        own = {"PREFECT_HOME": str(folder / "prefect")}
        self.environment = {**base, **own, **self._place.environment()}

    @property
    def api(self) -> str:
        """Address of the Prefect server's API."""
        return self._place.api

    def seconds(self) -> float:
        """Processor time of both so far, without their ended children."""
        found = filter(None, (program.process() for program in programs(self._place)))
        return sum(
            sum(process.cpu_times()[:2])
            for server in found
            for process in (server, *server.children(recursive=True))
            if process.is_running()
        )

    def close(self) -> None:
        """Stop both servers."""
        down(self._place)
