"""The commands by name. Each is imported when it runs, so that the list appears at once."""

import os
from typing import Annotated

import typer

from moorage.adapters.system.environment import add_variables
from moorage.cli.commands import Commands, Target

COMMANDS = {
    "Deploy a model": {
        "deploy": ("deploy:deploy", "Download, place, launch, and prove that it answers."),
        "plan": ("deploy:plan", "Show exactly what `deploy` would run, and why."),
        "init": ("init:init", "Write the file of a new spec, with comments."),
        "memory": ("memory:memory", "Predict the accelerator memory that a model needs."),
        "run": ("run:run", "Run a model here for an answer or a talk; leave nothing."),
        "pull": ("pull:pull", "Download a model and what goes with it."),
        "retire": ("deploy:retire", "Stop a model and free what it holds."),
    },
    "See what runs": {
        "status": ("status:status", "Show every model, its state and its endpoint."),
        "logs": ("logs:logs", "Print the log of a model's engine."),
        "endpoint": ("endpoint:endpoint", "Print the base URL of a model for OpenAI clients."),
        "chat": ("endpoint:chat", "Send a prompt to a model."),
        "usage": ("usage:usage", "Show requests and tokens by day, model and key."),
        "metrics": ("metrics:commands", "Print the metrics for Prometheus, or serve them."),
        "history": ("history:history", "Show all releases of a model."),
        "show": ("records:show", "Show the record of a release: what was decided, and why."),
        "diff": ("releases:diff", "Compare two releases."),
        "report": ("report:report", "Write the site as one HTML file."),
    },
    "Change what runs": {
        "rollback": ("releases:rollback", "Deploy an earlier release again."),
        "redeploy": ("redeploy:redeploy", "Redeploy models whose branch, image or file changed."),
        "reconcile": ("redeploy:reconcile", "Repair what is dead, left over or unreachable."),
        "unload": ("deploy:unload", "Put a model to sleep; a request wakes it."),
        "load": ("deploy:load", "Wake a model that sleeps."),
        "lora": ("lora:app", "Load and unload LoRA adapters of a running model."),
        "apply": ("apply:apply", "Make the running models match files."),
        "export": ("apply:export", "Write the running models as files."),
        "import": ("apply:import_models", "Deploy the models of an exported folder."),
        "approvals": ("redeploy:approvals", "Show the runs that wait for approval."),
        "approve": ("redeploy:approve", "Approve or refuse a run."),
    },
    "Machines and site": {
        "server": ("server:app", "The Prefect server that commands keep: status, logs, stop."),
        "serve": ("deploy:serve", "Serve the flows to the Prefect UI, schedules and API."),
        "doctor": ("machine:doctor", "Check what this machine can run."),
        "fleet": ("fleet:commands", "Show the hosts, or check them."),
        "engines": ("engines:commands", "Show, install, update and remove engines."),
        "models": ("models:commands", "Show, prune and verify stored models."),
        "list": ("models:list_models", "Show stored models, as `models` does."),
        "gateway": ("gateway:app", "One address for all models: up, down, status."),
        "key": ("keys:app", "Make and revoke API keys."),
        "policy": ("policy:app", "Show what the site allows, and check specs with it."),
        "ledger": ("ledger:commands", "Back the ledger up, restore and check it."),
        "explain": ("explain:explain", "Say what a field or the cause of a failure means."),
        "schema": ("machine:schema", "Read the arguments that a version of an engine accepts."),
    },
}
"""Commands by heading, in the usual order of work: place in this folder, and summary."""

TARGETS = {
    name: Target(f"moorage.cli.{place}", text, panel)
    for panel, named in COMMANDS.items()
    for name, (place, text) in named.items()
}

app = Commands(
    TARGETS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Finds every model a berth: deploys LLM inference servers, and keeps a record of why.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata  # noqa: PLC0415  (takes as long as the rest of this list)

        typer.echo(f"moorage {importlib.metadata.version('moorage')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Use a Prefect server that ends with this command.")
    ] = False,
) -> None:
    """Options of every command."""
    # Turn off Prefect's usage data, and with it the notice about them.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    if ephemeral and not version:
        add_variables({"MOORAGE_SERVER": "temporary"})


if __name__ == "__main__":
    app()
