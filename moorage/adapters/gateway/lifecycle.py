"""Starts and stops a gateway of this machine."""

import errno
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.processes import GatewayProcesses, gateway_lock, service_secrets
from moorage.adapters.hosts.reachability import listen
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway, GatewayOptions

UP_SECONDS = 30.0
DRAIN_SECONDS = 30.0
POLL_SECONDS = 0.05

STATE_SECONDS = 6.0
"""How long the states of gateways are waited for, all together."""


def bring_up(ledger: Ledger, home: Path, name: str, options: GatewayOptions) -> Gateway:
    """Start a gateway, or change the options of a running one; idempotent.

    Raises:
        Failure: `GATEWAY_REFUSED` when the gateway does not listen or runs on another machine;
            `PORT_TAKEN` when another program uses its port.
    """
    before = ledger.gateways.get(name)
    here = platform.node()
    if before:
        _require_same_place(before, here, options)
    processes = GatewayProcesses(home, name, options)
    processes.envoy.require_program()
    if before:
        ledger.gateways.change(name, options)
    else:
        processes.stop_envoy(0)  # left by a killed `down`
        _require_free(name, options)
        ledger.gateways.put(Gateway(name=name, machine=here, options=options))
    processes.start_service(service_secrets(ledger, options), renew=True)
    try:
        return _await(ledger, processes, name)
    except Failure:
        if before:  # it still listens with its former options
            ledger.gateways.change(name, before.options)
        else:
            take_down(ledger, home, name, drain_seconds=0)
        raise


def take_down(ledger: Ledger, home: Path, name: str, drain_seconds: float = DRAIN_SECONDS) -> int:
    """Stop a gateway of this machine once its requests have ended or time is up; idempotent.

    A gateway of another machine is only removed from the ledger, once its service has ended.

    Returns:
        Number of requests that were cut off.

    Raises:
        Failure: `GATEWAY_REFUSED` when its service runs on another machine.
    """
    row = ledger.gateways.get(name)
    here, lock = platform.node(), gateway_lock(name)
    holder = ledger.locks.holders([lock]).get(lock)
    # A machine may have another name by now.
    if row and row.machine != here and holder and not holder.is_here:
        raise _elsewhere(row, here)
    options = row.options if row else GatewayOptions()
    processes = GatewayProcesses(home, name, options)
    if options.image:
        # If Docker is down, the container would be left running.
        processes.envoy.require_program()
    ledger.gateways.drop(name)
    processes.stop_service()
    cut_off = processes.stop_envoy(drain_seconds)
    processes.remove()
    return cut_off


def gateway_states(
    ledger: Ledger,
    gateways: Sequence[Gateway],
    home: Path,
    on_done: Callable[[], None] = lambda: None,
) -> list[str]:
    """State of each gateway for people, in a word or a line, after `STATE_SECONDS` at most."""
    outcomes = map_parallel(lambda one: _state(ledger, one, home), gateways, STATE_SECONDS, on_done)
    states = []
    for gateway, outcome in zip(gateways, outcomes, strict=True):
        if isinstance(outcome, TimeoutError):
            where = gateway.options.host.name if gateway.options.host else "Docker"
            outcome = f"unknown: {where} does not answer within {STATE_SECONDS:g} s"
        if isinstance(outcome, Exception):
            raise outcome
        states.append(outcome)
    return states


def _state(ledger: Ledger, gateway: Gateway, home: Path) -> str:
    if gateway.problem:
        return gateway.problem
    follows = ledger.locks.is_held(gateway_lock(gateway.name))
    if gateway.machine != platform.node():
        return "running" if follows else f"its service on {gateway.machine} does not answer"
    envoy = GatewayProcesses(home, gateway.name, gateway.options).envoy
    try:
        listens = envoy.runs() and Admin(envoy.folder.admin()).is_ready()
    except Failure as failure:
        return str(failure)
    if listens and follows:
        return "running"
    return "does not follow: its service has ended" if listens else "down"


def _require_same_place(before: Gateway, here: str, options: GatewayOptions) -> None:
    """Refuse options that need another machine or another container."""
    if before.machine != here:
        raise _elsewhere(before, here)
    if before.options.fixed_properties != options.fixed_properties:
        raise Failure(
            Cause.GATEWAY_REFUSED,
            f"gateway {before.name} runs {_form(before.options)}, not {_form(options)}",
            suggestion=f"Take it down first: `moorage gateway down --name {before.name}`.",
        )


def _elsewhere(gateway: Gateway, here: str) -> Failure:
    return Failure(
        Cause.GATEWAY_REFUSED,
        f"gateway {gateway.name} runs on {gateway.machine}",
        suggestion=f"Take it down there, or choose another name here: --name NAME (on {here}).",
    )


def _require_free(name: str, options: GatewayOptions) -> None:
    """Refuse an address that cannot be bound; Envoy would only report rejected files."""
    if options.host:
        return
    try:
        listen(options.bind, options.port).close()
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        if not taken and options.image:
            return  # Docker may bind a port that this process may not
        why = os.strerror(error.errno or 0)
        raise Failure(
            Cause.PORT_TAKEN if taken else Cause.GATEWAY_REFUSED,
            f"gateway {name} cannot listen on {options.bind}:{options.port}: {why}",
            suggestion="Choose another --port or --bind, or stop the program that listens there.",
        ) from error


def _form(options: GatewayOptions) -> str:
    """How Envoy runs: as a process or as a container, and of which image."""
    if not options.image:
        return "as a process"
    if options.host:
        return f"as a container of {options.image} on {options.host.name}"
    tls = f" with {options.tls_certificate}" if options.tls_certificate else ""
    return f"as a container of {options.image}{tls}"


def _await(ledger: Ledger, processes: GatewayProcesses, name: str) -> Gateway:
    """Wait until the gateway listens with its options and follows the ledger."""
    epoch, give_up = ledger.gateways.epoch(), time.monotonic() + UP_SECONDS
    while True:
        found = ledger.gateways.get(name)
        if found and found.epoch >= epoch and not found.problem:
            return found
        if found and found.problem:
            raise Failure(Cause.GATEWAY_REFUSED, found.problem)
        if time.monotonic() > give_up:
            detail = processes.service_log() or "its service does not report"
            raise Failure(Cause.GATEWAY_REFUSED, f"gateway {name}: {detail}")
        time.sleep(POLL_SECONDS)
