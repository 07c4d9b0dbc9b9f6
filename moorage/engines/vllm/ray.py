"""Ray's part of a replica on several hosts: its ports and how it is started."""

from __future__ import annotations

from moorage.common.values import Value

SIDE_VARIABLES = {"RAY_LOG_TO_STDERR": "1"}
"""Beside the leader runs Ray alone; there its log is what the log is for."""


class RayPorts(Value):
    """Fixed ports out of one range, so that a firewall can be told.

    The second and the fourth are kept free of others: older Rays listen there (client and
    dashboard gRPC, until 2.45).

    Attributes:
        first: First port of the range.
        last: Last one.
    """

    first: int
    last: int

    def at(self, offset: int) -> int:
        """The port at a place of the range."""
        return self.first + offset


def ray_start(
    ports: RayPorts, own: str, leader: str, leads: bool, meeting: int = 0
) -> tuple[str, ...]:
    """The command that makes a host part of the cluster.

    Args:
        ports: The range of this host.
        own: Address of this host.
        leader: Address of the leader.
        leads: Whether this host leads.
        meeting: The leader's first port; 0 = its range is the same.
    """
    meets = meeting or ports.first
    services = {
        "node-manager-port": 7,
        "object-manager-port": 8,
        "runtime-env-agent-port": 9,
        "dashboard-agent-grpc-port": 4,
        "dashboard-agent-listen-port": 5,
        "metrics-export-port": 6,
        "min-worker-port": 10,
    }
    return (
        *("ray", "start", "--block", "--disable-usage-stats", "--verbose"),
        *(f"--{name}={ports.at(offset)}" for name, offset in services.items()),
        f"--max-worker-port={ports.last}",
        f"--node-ip-address={own}",
        *(_head(ports, own) if leads else (f"--address={meeting_place(leader, meets)}",)),
    )


def meeting_place(leader: str, port: int) -> str:
    """Address and port of the head, as Ray writes them: IPv6 in brackets."""
    return f"[{leader}]:{port}" if ":" in leader else f"{leader}:{port}"


def _head(ports: RayPorts, own: str) -> tuple[str, ...]:
    return (
        "--head",
        f"--port={ports.first}",
        f"--dashboard-host={own}",
        f"--dashboard-port={ports.at(2)}",
    )
