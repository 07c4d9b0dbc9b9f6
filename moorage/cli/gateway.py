"""`moorage gateway`: one address for all models."""

import platform
from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.specs import FLEET_FILE, load_fleet
from moorage.adapters.gateway.envoy_image import fleet_host, present_envoy_image, this_machine
from moorage.adapters.gateway.lifecycle import bring_up, gateway_states, take_down
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.counting import counting
from moorage.cli.options import DEPLOYMENTS, AsJson, FleetFile, open_ledger, require_name
from moorage.cli.output import dump, err, print_table, say
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayHost, GatewayOptions
from moorage.gateway.programs import ENVOY_IMAGE
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot

DEFAULTS = GatewayOptions()

app = Commands(no_args_is_help=True, help="One address for all models: up, down, status.")

GatewayName = Annotated[str, typer.Option("--name", help="Name of the gateway.")]


Bind = Annotated[
    str,
    typer.Option(
        help="Address to listen on. 0.0.0.0: all of its machine.",
        show_default=f"{DEFAULTS.bind}, or the address of --host",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Port to listen on.", show_default=str(DEFAULTS.port)),
]
OpenAccess = Annotated[
    bool | None,
    typer.Option(
        "--open-access/--keys",
        help="Callers of other machines need no API key.",
        show_default="keys",
    ),
]
Certificate = Annotated[str, typer.Option(help="Certificate chain, a PEM file.")]
PrivateKey = Annotated[str, typer.Option(help="Its private key, a PEM file.")]
TlsSecret = Annotated[str, typer.Option(help="Name of a secret with both, instead.")]
InContainer = Annotated[bool, typer.Option("--container", help="Run Envoy as a container.")]
EnvoyImage = Annotated[str, typer.Option(help="Image of the container, with Envoy in it.")]
ContainerHost = Annotated[str, typer.Option(help="Host of the fleet on which the container runs.")]


@app.command()
def up(
    name: GatewayName = "main",
    bind: Bind = "",
    port: Port = None,
    open_access: OpenAccess = None,
    tls_certificate: Certificate = "",
    tls_key: PrivateKey = "",
    tls_secret: TlsSecret = "",
    container: InContainer = False,
    image: EnvoyImage = "",
    host: ContainerHost = "",
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Start a gateway, or change how it listens. Its service runs on this machine.

    Of a gateway that runs, what is not given stays as it is.
    """
    require_name(name)
    ledger = open_ledger()
    running = ledger.gateways.get(name)
    before = running.options if running else DEFAULTS
    there, present = _container(before, fleet, wanted=container, image=image, host=host)
    usual = there.bind if there and not before.host else before.bind
    given = {"bind": bind or usual, "port": port, "open_access": open_access}
    changes = {
        **{option: value for option, value in given.items() if value is not None},
        **_tls(tls_certificate, tls_key, tls_secret),
        **{"host": there, "image": present, "fleet": str(_fleet_file(fleet, before.fleet) or "")},
    }
    options = GatewayOptions.model_validate({**before.model_dump(), **changes})
    gateway = bring_up(ledger, Settings().root, name, options)
    if as_json:
        return dump({**gateway.model_dump(mode="json"), "url": f"{gateway.url}/v1"})
    say(f"[bold green]gateway {name}[/] serves every model at {gateway.url}/v1", markup=True)
    if options.requires_key:
        say("callers need an API key: moorage key create NAME")
    return None


def _container(
    before: GatewayOptions, fleet: Path | None, *, wanted: bool, image: str, host: str
) -> tuple[GatewayHost | None, str]:
    """Host and image of Envoy's container; none if it runs as a process of this machine."""
    wanted = wanted or bool(before.image)
    host = host or (before.host.name if before.host else "")
    if not wanted:
        if image or host:
            detail = f"{'--image' if image else '--host'} has no use without a container"
            raise Failure(Cause.BAD_SETTING, detail, suggestion="Add --container.")
        return None, ""
    place, there = _place(host, load_fleet(_fleet_file(fleet, before.fleet)))
    return there, _image(before, image, place)


def _tls(certificate: str, key: str, secret: str) -> dict[str, str]:
    """The options for HTTPS; empty if none is given. They replace each other."""
    if not (certificate or key or secret):
        return {}
    files = {"tls_certificate": _absolute(certificate), "tls_key": _absolute(key)}
    return {**files, "tls_secret": secret}


def _absolute(file: str) -> str:
    return str(Path(file).expanduser().absolute()) if file else ""


def _place(name: str, fleet: Fleet) -> tuple[HostSnapshot, GatewayHost | None]:
    """The host of the container: the named host of the fleet, else this machine."""
    if not name:
        return this_machine(fleet.registries), None
    for host in fleet.hosts:
        if host.name == name:
            return fleet_host(host, fleet)
    known = ", ".join(host.name for host in fleet.hosts)
    raise Failure(
        Cause.BAD_SETTING,
        f"there is no host '{name}' in the fleet, which has {known}",
        suggestion="Name one of them, or another fleet with --fleet FILE.",
    )


def _image(before: GatewayOptions, chosen: str, place: HostSnapshot) -> str:
    """The chosen image, else that of the running gateway, else the default."""
    if before.image and not chosen:
        return before.image
    return present_envoy_image(chosen or ENVOY_IMAGE, place)


def _fleet_file(chosen: Path | None, before: str) -> Path | None:
    """The fleet file for waking models: the chosen one, that of before, or deployments/'s."""
    usual = DEPLOYMENTS / FLEET_FILE
    found = chosen or (Path(before) if before else usual if usual.is_file() else None)
    return found.absolute() if found else None


@app.command()
def down(
    name: GatewayName = "main",
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="How long requests may take to end.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Stop a gateway of this machine. The models serve on at their own addresses.

    A gateway of another machine, whose service has ended, is removed from the ledger.
    """
    ledger = open_ledger()
    gateway = ledger.gateways.get(name)
    if not gateway:
        raise Failure(
            Cause.BAD_SETTING,
            f"there is no gateway '{name}'",
            suggestion="`moorage gateway status` lists them.",
        )
    cut_off = take_down(ledger, Settings().root, name, drain_seconds)
    if as_json:
        return dump({"gateway": name, "requests_cut_off": cut_off})
    if gateway.machine != platform.node():
        return say(
            f"gateway {name} of {gateway.machine} is removed from the ledger; an Envoy that still"
            " runs there keeps its last routes and keys"
        )
    return say(
        f"gateway {name} is down" + (f"; {cut_off} requests were cut off" if cut_off else "")
    )


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the gateways: address, state, models."""
    ledger, home = open_ledger(), Settings().root
    count = len(ledger.routes.routes())
    gateways = ledger.gateways.all()
    with counting(err, "asking gateways", len(gateways)) as done:
        found = list(zip(gateways, gateway_states(ledger, gateways, home, done), strict=True))
    if as_json:
        return dump(
            [
                {**one.model_dump(mode="json"), "url": _url(one), "state": state}
                for one, state in found
            ]
        )
    return print_table(
        ("gateway", "host", "address", "callers", "state", "models"),
        [
            (
                one.name,
                one.options.host.name if one.options.host else one.machine,
                _url(one),
                "with a key" if one.options.requires_key else "everybody",
                state,
                str(count),
            )
            for one, state in found
        ],
        empty="There is no gateway. Start one with `moorage gateway up`.",
    )


def _url(gateway: Gateway) -> str:
    """Base URL for this machine; for its own machine where no other one reaches the gateway."""
    return f"{gateway.url_from(platform.node()) or gateway.url}/v1"
