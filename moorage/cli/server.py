"""`moorage server`: the Prefect server that commands start and keep."""

from datetime import UTC, datetime
from typing import Annotated

import psutil
import typer

from moorage.adapters.prefect.home_server import running_server, server_log, stop_server
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.fork_server import fork_server_process
from moorage.cli.options import AsJson
from moorage.cli.output import print_answer, say
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds

app = Commands(
    no_args_is_help=True,
    help="The Prefect server that commands start and keep: status, url, logs, stop.",
)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show whether it runs, where, and since when."""
    found = running_server(Settings().root)
    if found is None:
        text = "No server runs. The next command that changes something starts one."
        return print_answer({"running": False}, text, as_json=as_json)
    begun = datetime.fromtimestamp(psutil.Process(found.process.pid).create_time(), UTC)
    age = human_seconds((datetime.now(UTC) - begun).total_seconds())
    content = {"running": True, "url": found.url, "pid": found.process.pid, "since": begun}
    whose = "kept for commands" if found.kept else "of `moorage serve`"
    text = f"{found.url} (process {found.process.pid}, for {age}, {whose})"
    forking = fork_server_process(Settings().root)
    if forking:
        text += f"\nCommands are forked off process {forking}."
    more = {"kept": found.kept, "forking_pid": forking or None}
    return print_answer({**content, **more}, text, as_json=as_json)


@app.command()
def url() -> None:
    """Print the address of its API, for PREFECT_API_URL; its pages are there without `/api`."""
    found = running_server(Settings().root)
    if found is None:
        raise Failure(Cause.SERVER_UNAVAILABLE, "no server of this home runs")
    say(found.url)


@app.command()
def logs(
    tail: Annotated[int, typer.Option("--tail", "-n", min=1, help="Number of lines.")] = 200,
) -> None:
    """Print the last lines that the kept server has written since its start."""
    file = server_log(Settings().root)
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    for line in lines[-tail:]:
        say(line)


@app.command()
def stop(as_json: AsJson = False) -> None:
    """End it. Flows that run end as in an outage; the next command starts it again."""
    found = stop_server(Settings().root)
    if found and not found.kept:
        detail = f"{found.url} is the server of `moorage serve` (process {found.process.pid})"
        raise Failure(Cause.BAD_SETTING, detail, suggestion="It ends with `moorage serve`.")
    text = f"ended {found.url}" if found else "No server runs."
    print_answer({"stopped": found.url if found else None}, text, as_json=as_json)
