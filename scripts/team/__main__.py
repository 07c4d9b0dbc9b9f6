"""A server for a team: PostgreSQL, a Prefect server on it, `moorage serve` with its ledger on it.

    python -m scripts.team up
    python -m scripts.team down

All listen on this machine's loopback alone. docs/team.md tells the rest.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from signal import Signals

import httpx

from moorage.adapters.prefect import api_server
from moorage.common.failures import Failure
from scripts.team import postgres
from scripts.team.place import LOOPBACK, Place
from scripts.team.program import Program, Trouble, must_be_free, say

START_SECONDS = 180.0
SERVE_STOP_SECONDS = 180.0
"""Time for running flow runs to be cancelled and to undo their effects."""

SERVER_STOP_SECONDS = 45.0


def main() -> int:
    """Start or stop the team's server."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.team",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--folder", type=Path, default=Path(".moorage/team"))
    parser.add_argument("--port", type=int, default=4200, help="of the Prefect server")
    parser.add_argument("--postgres-port", type=int, default=5433)
    parser.add_argument(
        "--no-serve", action="store_true", help="leave the flows to the workers of a work pool"
    )
    given = parser.parse_args()
    place = Place(given.folder.absolute(), given.port, given.postgres_port)
    try:
        if given.command == "down":
            down(place)
        else:
            up(place, serve=not given.no_serve)
    except (Trouble, Failure) as trouble:
        say(str(trouble))
        return 1
    return 0


def up(place: Place, *, serve: bool) -> None:
    """Start all programs that do not run yet."""
    before = any(program.process() for program in programs(place))
    try:
        if place.own_postgres:
            postgres.up(place)
        place.folder.mkdir(parents=True, exist_ok=True)
        place.write_environment()
        _server_up(place)
        if serve:
            _serve_up(place)
    except BaseException:
        if not before:  # all or none
            down(place)
        raise
    say(f"UI: {place.api.removesuffix('/api')}   a shell of the team: . {place.environment_file}")
    say("The login of the UI: `moorage serve --show-login` in such a shell.")


def down(place: Place) -> None:
    """Stop all programs, the last started one first. The data stay."""
    for program in programs(place):
        program.stop()


def programs(place: Place) -> tuple[Program, ...]:
    """All programs of the server, in the order in which they are stopped."""
    return (_serve(place), _server(place), postgres.program(place))


def _serve(place: Place) -> Program:
    return Program("moorage serve", place.folder, Signals.SIGTERM, SERVE_STOP_SECONDS)


def _server(place: Place) -> Program:
    return Program("Prefect server", place.folder, Signals.SIGTERM, SERVER_STOP_SECONDS)


def _server_up(place: Place) -> None:
    server = _server(place)
    if server.process() is None:
        must_be_free(place.server_port, "--port")
        words = ["--host", LOOPBACK, "--port", str(place.server_port)]
        environment = {**place.environment(), **place.server_environment()}
        server.start([sys.executable, "-m", api_server.__name__, *words], environment)
    server.wait(lambda: _answers(place.api), START_SECONDS, place.api)


def _serve_up(place: Place) -> None:
    serve = _serve(place)
    if serve.process() is None:
        serve.start([sys.executable, "-m", "moorage.cli.app", "serve"], place.environment())
    serve.wait(lambda: _is_serving(place, serve.log), START_SECONDS, place.api)


def _is_serving(place: Place, log: Path) -> bool:
    """Whether all deployments named in the log of `moorage serve` are registered.

    The log may wrap the line with their names.
    """
    listed = re.search(r"\nserving ((?:[\w-]+/[\w-]+,?\s+)+)", log.read_text())
    names = re.findall(r"[^\s,]+", listed[1]) if listed else []
    user, _, password = place.login().partition(":")
    login = httpx.BasicAuth(user, password)
    return bool(names) and all(
        _answers(place.api, f"/deployments/name/{name}", login) for name in names
    )


def _answers(api: str, path: str = "/health", login: httpx.BasicAuth | None = None) -> bool:
    try:
        return httpx.get(f"{api}{path}", auth=login, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    sys.exit(main())
