"""The two programs of a gateway: Envoy, and the service that keeps its routes."""

from collections.abc import Iterable

from moorage.engines.flags import Flag, Variable, default_flag
from moorage.engines.launch import (
    LABEL_LEDGER,
    LABEL_MODEL,
    LABEL_RELEASE,
    LABEL_REPLICA,
    LABEL_ROLE,
    ContainerSpec,
)
from moorage.placement.placement import Role
from moorage.spec import RuntimeName

OWNER = "gateway"
"""Stands where engines have their ledger: reconciling leaves alone what is not of its ledger."""

FLUSH_MILLISECONDS = 1000
"""How often the access log is written."""


def envoy_program(name: str, program: str, bootstrap: str) -> ContainerSpec:
    """Envoy of a gateway.

    Args:
        name: Name of the gateway.
        program: Path of Envoy.
        bootstrap: Path of the file that it starts with.
    """
    return _program(
        f"{name}-envoy",
        default_flag("Envoy", program),
        default_flag("its configuration", "-c", bootstrap),
        default_flag("no shared memory with another Envoy", "--disable-hot-restart"),
        default_flag("the log", "--log-level", "warn"),
        default_flag("the access log", "--file-flush-interval-msec", f"{FLUSH_MILLISECONDS}"),
    )


def service_program(
    name: str, python: str, module: str, environment: Iterable[Variable]
) -> ContainerSpec:
    """The service of a gateway.

    Args:
        name: Name of the gateway.
        python: Path of the interpreter.
        module: Its module.
        environment: Its variables.
    """
    command = default_flag("the service", python, "-m", module, name)
    return _program(f"{name}-service", command, environment=environment)


def _program(name: str, *command: Flag, environment: Iterable[Variable] = ()) -> ContainerSpec:
    labels = {LABEL_LEDGER: OWNER, LABEL_MODEL: "", LABEL_RELEASE: name}
    return ContainerSpec(
        name=name,
        host="this machine",
        address="local",
        runtime=RuntimeName.PROCESS,
        command=command,
        environment=tuple(environment),
        accelerator_type="cpu",
        bind="127.0.0.1",
        port=0,
        labels={**labels, LABEL_ROLE: Role.LEADER, LABEL_REPLICA: "0"},
    )
