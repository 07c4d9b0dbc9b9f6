"""`moorage server`: the Prefect server that commands start and keep."""

from datetime import UTC, datetime
from typing import Annotated

import psutil
import typer

from moorage.adapters.prefect.home_server import running_server, server_log, stop_server
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.fork_server import fork_server_process, stop_fork_server
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
    found, forking = running_server(Settings().root), fork_server_process(Settings().root)
    forked = f"\nCommands are forked off process {forking}." if forking else ""
    if found is None:
        none = {"running": False, "forking_pid": forking or None}
        starts = "No server runs. The next command that changes something starts one."
        text = f"No server of this home runs.{forked}" if forking else starts
        return print_answer(none, text, as_json=as_json)
    begun = datetime.fromtimestamp(psutil.Process(found.process.pid).create_time(), UTC)
    age = human_seconds((datetime.now(UTC) - begun).total_seconds())
    pid, whose = found.process.pid, "kept for commands" if found.kept else "of `moorage serve`"
    content = {"running": True, "url": found.url, "pid": pid, "since": begun, "kept": found.kept}
    text = f"{found.url} (process {pid}, for {age}, {whose}){forked}"
    return print_answer({**content, "forking_pid": forking or None}, text, as_json=as_json)


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
    """Stop it, and the process that commands are forked off. Running flows end as in an outage."""
    home = Settings().root
    found, forking = stop_server(home), fork_server_process(home)
    if found and not found.kept:
        detail = f"{found.url} is the server of `moorage serve` (process {found.process.pid})"
        raise Failure(Cause.BAD_SETTING, detail, suggestion="It ends with `moorage serve`.")
    stop_fork_server(home)
    content = {"stopped": found.url if found else None, "forking_pid": forking or None}
    forked = f"ended process {forking}, which forked commands" if forking else "No server runs."
    print_answer(content, f"ended {found.url}" if found else forked, as_json=as_json)
