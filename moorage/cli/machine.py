"""`moorage doctor` and `schema`: check this machine, and read engines' arguments."""

import difflib
import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.engines.schema_extraction import schema_of_image, schema_of_installed
from moorage.adapters.engines.schema_store import SchemaStore, shipped_schemas
from moorage.adapters.hosts.host_diagnosis import check_accelerators
from moorage.adapters.hosts.survey import docker_version, survey_host
from moorage.adapters.ledger import Ledger
from moorage.adapters.prefect.settings_files import may_know_a_server
from moorage.adapters.system.settings import PREFIX, Settings
from moorage.cli.fleet import print_check
from moorage.cli.options import AsJson
from moorage.cli.output import dump, err, out, print_table, say
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.units import human_bytes
from moorage.engines.registry import ENGINES
from moorage.inventory.checks import LITTLE_DISK, Check
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import HostSnapshot
from moorage.spec import EngineName

MORE_DISK = "Free some space, or set MOORAGE_HOME to a larger disk."
NO_DOCKER = "Install Docker and let this user reach its socket; engines then run in containers."
NO_ACCELERATORS = "For NVIDIA GPUs install the driver and the container toolkit; CPU works without."
WRITTEN_ONLY = "only what a model's config.json states"
CONFIGS = (
    "`pip install '.[configs]'` in the checkout brings transformers, which knows what models leave"
    " out."
)
NOT_INSTALLED = {
    EngineName.TRANSFORMERS: "not installed here",
    EngineName.SGLANG: "not installed here (it can run in a container)",
    EngineName.VLLM: "not installed here (it can run in a container)",
    EngineName.LLAMA_CPP: "not installed here (it can run in a container)",
    EngineName.TRITON: "it runs in a container",
}
INSTALL = "`moorage engines install {}`"


def doctor(as_json: AsJson = False) -> None:
    """Check what this machine can run, and show how to install what is missing."""
    checks = _examine(Settings())
    if as_json:
        dump(checks)
    for check in () if as_json else checks:
        print_check(check)
    if any(check.broken for check in checks):
        raise typer.Exit(ExitCode.MACHINE)


def schema(
    engine: Annotated[EngineName, typer.Argument(help="vllm or llama.cpp.")] = EngineName.VLLM,
    image: Annotated[str | None, typer.Option(help="Use the engine in this image.")] = None,
    installed: Annotated[
        bool, typer.Option("--installed", help="Use the engine that is installed here.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read the arguments that an engine accepts, and check `engine.args` with them from then on.

    Without an option, show the versions whose arguments are known.
    """
    if image and installed:
        raise Failure(Cause.BAD_SETTING, "--image and --installed exclude each other")
    if not image and not installed:
        return _list_schemas(as_json=as_json)
    place = f"in {image}" if image else "installed here"
    with err.status(f"reading the arguments of the {engine} {place} (vLLM: ~15 s)"):
        if image:
            schema, names = schema_of_image(engine, image)
        else:
            schema = schema_of_installed(engine)
            names = (schema.version,)
        paths = SchemaStore(Settings().root, engine).keep(schema, names)
    if as_json:
        return dump(schema.model_dump(mode="json", exclude_defaults=True))
    out.print(f"{engine} {schema.version} takes {len(schema.arguments)} arguments; saved in")
    for path in paths:
        say(f"  {path}")
    return None


def _examine(settings: Settings) -> list[Check]:
    """Check everything that a deployment on this machine may need."""
    here = Fleet().hosts[0]
    host = survey_host(here)
    docker, trouble = docker_version("local")
    installed = {program.engine: program.version or "installed" for program in host.programs}
    settings.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.root).free
    room = f"{human_bytes(free)} free under {settings.root}"
    return [
        _found("Python", platform.python_version()),
        _found("Prefect", importlib.metadata.version("prefect")),
        *_misspelt_variables(os.environ),
        *_prefect_server(),
        _ledger(settings),
        _found("disk", room if free >= LITTLE_DISK else "", room, MORE_DISK),
        _found("model defaults", _transformers(), WRITTEN_ONLY, CONFIGS),
        _found("Docker", docker, trouble, NO_DOCKER),
        *_accelerators(here, host),
        *(
            _found(f"engine {name}", installed.get(name, ""), missing, INSTALL.format(name))
            for name, missing in NOT_INSTALLED.items()
        ),
    ]


def _accelerators(here: Host, host: HostSnapshot) -> list[Check]:
    if host.accelerators or host.troubles:
        return check_accelerators(here, host)
    return [_found("accelerators", "", "none", NO_ACCELERATORS)]


def _transformers() -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return f"transformers {importlib.metadata.version('transformers')}"
    return ""


def _found(name: str, found: str, missing: str = "", fix: str = "") -> Check:
    if found:
        return Check(name=name, state="ok", found=found)
    return Check(name=name, state="absent", found=missing, fix=fix)


def _misspelt_variables(names: Iterable[str]) -> Iterator[Check]:
    """A finding for each variable whose name is nearly that of a setting."""
    settings = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for name in names:
        near = difflib.get_close_matches(name.upper(), settings, n=1, cutoff=0.9)
        if near and name.upper() not in settings:
            found, fix = f"{name} is no setting, and has no effect", f"Did you mean `{near[0]}`?"
            yield Check(name="settings", state="broken", found=found, fix=fix)


def _prefect_server() -> list[Check]:
    """The configured server; nothing where commands start their own."""
    if not may_know_a_server(Path.cwd(), os.environ):
        return []
    from moorage.adapters.prefect.api_login import reached_server  # noqa: PLC0415  (imports Prefect)

    name = "Prefect server"
    try:
        url = reached_server()
    except Failure as failure:
        return [Check(name=name, state="broken", found=failure.detail, fix=failure.suggestion)]
    return [_found(name, url)] if url else []


def _ledger(settings: Settings) -> Check:
    try:
        Ledger(settings.ledger).close()
    except Failure as failure:
        return Check(name="ledger", state="broken", found=failure.detail, fix=failure.suggestion)
    return _found("ledger", settings.ledger.rpartition("@")[2])


def _list_schemas(*, as_json: bool) -> None:
    known = [item for engine in ENGINES for item in shipped_schemas(engine)]
    if as_json:
        return dump([{"engine": item.engine, "version": item.version} for item in known])
    rows = [
        (item.engine, item.version, str(len(item.arguments)), str(len(item.options)))
        for item in known
    ]
    return print_table(("engine", "version", "arguments", "options"), rows)
