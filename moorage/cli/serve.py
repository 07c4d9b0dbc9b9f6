"""Serve the flows of prefect.yaml, without a work pool or worker."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import typer
from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings

import flows
from flows.serving import serve_all
from moorage.adapters.files.policy_file import (
    POLICY_PATH,
    PROJECT_FILE,
    load_policy,
    load_site_fleet,
)
from moorage.adapters.hosts.reachability import listen
from moorage.adapters.ledger.database import migrate_database
from moorage.adapters.metrics.metrics_server import MetricsServer
from moorage.adapters.prefect import api_login, api_server, home_server
from moorage.adapters.prefect.deployment_file import deployments_of
from moorage.adapters.prefect.new_database import provide_database
from moorage.adapters.system.listeners import is_listening
from moorage.adapters.system.process import INTERPRETER
from moorage.adapters.system.settings import Settings
from moorage.cli.endpoint import gateway_addresses
from moorage.cli.metrics import exporter
from moorage.cli.options import open_ledger
from moorage.cli.output import dump, err, out, say
from moorage.cli.own_server import OwnServer
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import host_port
from moorage.inventory.access import LOOPBACK, is_loopback

CONNECT_SECONDS = 10.0
"""How long a server that should already run may take to answer."""

MIGRATION_SECONDS = 10.0


def serve_flows(
    limit: int, *, host: str = "", port: int = 0, metrics_port: int = 0, no_login: bool = False
) -> None:
    """Serve until interrupted, with the options of `moorage serve`; migrate the ledger.

    Raises:
        Failure: `BAD_SETTING` when the API would answer without a login where that is not allowed,
            or when `host` or `port` is given although a server is configured.
    """
    _listen_at(host, port)
    # On a signal, exit through the blocks below, so that the server stops, too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    file = project_file()
    deployments = deployments_of(file)
    _hand_on_policy(served_folder(file))
    _migrate(Settings().ledger)
    if metrics_port:
        MetricsServer(exporter(), "127.0.0.1", metrics_port, Settings().served_names).start()
        say(f"metrics http://127.0.0.1:{metrics_port}/metrics")
    if no_login:
        err.print(api_login.NO_LOGIN, style="bold red", highlight=False)
    with _server(no_login=no_login) as url:
        names = ", ".join(f"{item.flow_name}/{item.name}" for item in deployments)
        say(f"API {url}\nserving {names}")
        with suppress(Failure):  # as above
            for address in gateway_addresses(open_ledger()):
                say(f"models {address}")
        serve_all(deployments, limit, say)


def _migrate(ledger: str) -> None:
    try:
        migrate_database(ledger)
    except Failure as failure:
        err.print(f"the ledger is not migrated yet: {failure}", style="yellow", highlight=False)
        threading.Thread(target=_migrate_later, args=(ledger,), daemon=True).start()


def _migrate_later(ledger: str) -> None:
    while True:
        time.sleep(MIGRATION_SECONDS)
        with suppress(Failure):
            return migrate_database(ledger)


def show_login(*, as_json: bool) -> None:
    """Print only the login of the server."""
    login = api_login.current_login()
    user, _, password = login.partition(":")
    if as_json:
        return dump({"login": login, "user": user, "password": password})
    return typer.echo(login)


def project_file() -> Path:
    """The prefect.yaml of this folder, else of the checkout that moorage runs from."""
    for folder in (Path.cwd(), Path(flows.__file__).parents[1]):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    raise typer.BadParameter(
        f"{Path.cwd()} has no {PROJECT_FILE}; run it in a folder that has one, such as a"
        " checkout of moorage"
    )


def served_folder(project: Path) -> Path:
    """The folder of the offered specs: this one if it has specs, else that of prefect.yaml."""
    return Path.cwd() if POLICY_PATH.parent.is_dir() else project.parent.absolute()


def _hand_on_policy(folder: Path) -> None:
    """Pass this folder's policy to every run, in whatever folder it runs."""
    os.environ.setdefault("MOORAGE_PROJECT", str(folder))
    settings = Settings()
    say(f"specs of {settings.project}")
    policy = load_policy(settings)
    load_site_fleet(policy, settings)
    if policy.file:
        os.environ["MOORAGE_POLICY"] = policy.file
    say(f"policy {policy.source}")


def _listen_at(host: str, port: int) -> None:
    """Set the address at which our own server listens, instead of Prefect's setting."""
    wanted = {"PREFECT_SERVER_API_HOST": host, "PREFECT_SERVER_API_PORT": str(port or "")}
    named = {name: value for name, value in wanted.items() if value}
    if named and (url := get_current_settings().api.url):
        raise Failure(
            Cause.BAD_SETTING,
            f"--host and --port are for a server that starts here; PREFECT_API_URL names {url}",
            suggestion="Leave them out, or unset PREFECT_API_URL.",
        )
    os.environ.update(named)
    refresh_global_settings_context()


@contextmanager
def _server(*, no_login: bool) -> Iterator[str]:
    """The URL of the configured server, or of our own, which stops with this process."""
    if url := get_current_settings().api.url:
        api_login.sign_in()
        _wait(url, None)
        api_login.require_login_of_other(url, no_login=no_login)
        say(f"UI  {url.removesuffix('/api')}")
        yield url
        return
    address = get_current_settings().server.api
    login, is_new = api_login.login_of_own(address.host, no_login=no_login)
    with _own_server(address.host, address.port, login) as url:
        if login:
            api_login.use_login(login, {"PREFECT_API_URL": url})
        else:
            os.environ["PREFECT_API_URL"] = url
            refresh_global_settings_context()
        _print_address(url, login, is_new=is_new)
        yield url


def _print_address(url: str, login: str, *, is_new: bool) -> None:
    """Print the URL of the UI and how to sign in; a password is printed only on a terminal."""
    out.print(f"UI  {url.removesuffix('/api')}", highlight=False)
    if login and is_new and out.is_terminal:
        out.print(f"    sign in with {login}", highlight=False, soft_wrap=True)
    if login:
        out.print("    `moorage serve --show-login` shows the login", highlight=False)


@contextmanager
def _own_server(host: str, port: int, login: str) -> Iterator[str]:
    names = [word for name in _names(host) for word in ("--name", name)]
    where = ["--host", host, "--port", str(port)]
    environment = {home_server.ANALYTICS: "false", **provide_database(), **os.environ}
    if login:
        environment[home_server.SERVER_VARIABLE] = login

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*INTERPRETER, "-m", api_server.__name__, *where, *names],
            env=environment,
            stdout=subprocess.DEVNULL,
            # Ctrl-C must not reach the server, which stays until the runs have reported their ends.
            start_new_session=True,
        )

    home, url = Settings().root, _near_url(host, port)
    with ExitStack() as stack:
        with home_server.start_lock(home):  # a command that begins now waits for this server
            _end_kept(home, host, port)
            server = OwnServer(home, url, start)
            stack.callback(server.stop)
            _wait(url, server.process)
            server.keep()
        yield url


def _end_kept(home: Path, host: str, port: int) -> None:
    """End the kept server, unless another process has the port of the server that replaces it."""
    kept = home_server.running_server(home)
    if kept is None or urlsplit(kept.url).port != port:
        _require_free(host, port)
    if (ended := home_server.stop_server(home)) and ended.kept:
        say(f"ended {ended.url}, which commands had started")
    _require_free(host, port)


def _near_url(host: str, port: int) -> str:
    """The API URL by which this machine reaches a server that listens on an address."""
    return f"http://{host_port(LOOPBACK.get(host, host), port)}/api"


def _names(host: str) -> set[str]:
    """The host names that the server answers to, in addition to those of the loopback."""
    page = urlsplit(get_current_settings().server.ui.api_url or "").hostname
    own = set() if is_loopback(host) else {host, socket.gethostname()}
    return {name for name in (*own, page, *Settings().served_names) if name}


def _require_free(host: str, port: int) -> None:
    try:
        listen(host, port).close()
    except OSError as error:
        raise Failure(
            Cause.PORT_TAKEN,
            f"a Prefect server cannot listen on {host}:{port}: {error.strerror}",
            suggestion=f"If a Prefect server listens there, set PREFECT_API_URL=http://{host}:{port}/api"
            " to use it. Otherwise choose another port with --port.",
        ) from error


def _wait(url: str, server: subprocess.Popen[bytes] | None) -> None:
    give_up = time.monotonic() + (home_server.START_SECONDS if server else CONNECT_SECONDS)
    with httpx.Client(timeout=2) as client:  # one for all: each loads the CA certificates
        while not _is_healthy(client, url, server):
            if server is not None and server.poll() is not None:
                raise Failure(Cause.SERVER_UNAVAILABLE, "the Prefect server exited while starting")
            if time.monotonic() > give_up:
                detail = f"the Prefect server at {url} does not answer"
                advice = "Start it, or correct PREFECT_API_URL, or unset it to start a server here."
                raise Failure(Cause.SERVER_UNAVAILABLE, detail, suggestion=advice)
            time.sleep(0.3)


def _is_healthy(client: httpx.Client, url: str, server: subprocess.Popen[bytes] | None) -> bool:
    # Another program that has taken the port must not pass for our server and get the login.
    if server is not None and not is_listening(server.pid, urlsplit(url).port):
        return False
    try:
        return client.get(f"{url}/health").status_code == 200
    except httpx.HTTPError:
        return False
