from __future__ import annotations

import socket

import psutil

from moorage.adapters.hosts.local_host import survey_host
from moorage.adapters.hosts.ports import ports_in_use
from moorage.inventory.fleet import Host

HERE = "127.0.0.1"


def test_a_port_is_in_use_as_soon_as_it_is_bound() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
        taken.bind((HERE, 0))
        port = taken.getsockname()[1]
        assert port in ports_in_use(HERE, port, port)
        taken.listen()
        assert port in ports_in_use(HERE, 1, 1)
    assert port not in ports_in_use(HERE, port, port)


def test_a_port_is_free_though_connections_of_a_server_that_ended_linger_there() -> None:
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((HERE, port)) as client:
            served, _ = server.accept()
            served.close()  # who closes first is the one that lingers
            assert client.recv(1) == b""
    assert _states(port) == {psutil.CONN_TIME_WAIT}
    assert port not in ports_in_use(HERE, port, port)
    with socket.create_server((HERE, port)):
        assert port in ports_in_use(HERE, port, port)


def test_a_survey_tells_the_ports_of_its_host_that_are_taken() -> None:
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        host = Host(name="here", runtimes=("process",), ports=f"{port}-{port}")
        assert port in survey_host(host).ports_in_use


def _states(port: int) -> set[str]:
    seen = psutil.net_connections(kind="tcp")
    return {one.status for one in seen if one.laddr and one.laddr.port == port}
