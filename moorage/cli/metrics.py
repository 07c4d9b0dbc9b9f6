"""`moorage metrics`: print the Prometheus metrics once, or serve them."""

import sys
from typing import Annotated

import typer

from moorage.adapters.metrics.exporter import Exporter, written
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.options import AsJson, open_ledger
from moorage.cli.output import dump, say

PORT = 9464
"""The default port of OpenTelemetry's Prometheus exporters."""

commands = Commands(help="Metrics for Prometheus; `moorage metrics serve` serves them.")


@commands.callback(invoke_without_command=True)
def metrics(context: typer.Context, as_json: AsJson = False) -> None:
    """Print the metrics of the ledger: releases, phases, hosts, reconciling, requests."""
    if context.invoked_subcommand is not None:
        return
    found = exporter().metrics()
    if as_json:
        dump(list(found))
    else:
        sys.stdout.write(written(found).decode())


@commands.command()
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than the loopback show all names.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = PORT,
) -> None:
    """Serve /metrics and /targets until interrupted."""
    from moorage.adapters.metrics.metrics_server import MetricsServer  # noqa: PLC0415  (printing needs none)

    server = MetricsServer(exporter(), host, port, Settings().served_names)
    say(f"metrics http://{host}:{port}/metrics\ntargets http://{host}:{port}/targets")
    server.run()


def exporter() -> Exporter:
    """The exporter of this machine's ledger."""
    return Exporter(open_ledger(), Settings().root)
