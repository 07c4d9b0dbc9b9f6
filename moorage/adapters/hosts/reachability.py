"""Checks over TCP whether one host reaches another.

It runs here, and as a program in helper containers: it imports the standard library alone.
"""

import json
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

GREETING = b"moorage"
LISTEN_SECONDS = 60.0
"""A listener ends by itself, because the caller may have been killed."""

CONNECT_SECONDS = 3.0
PATIENCE_SECONDS = 8.0
"""Limit for the start of a listener; a proxy in front may accept connections before."""


def listen(address: str, port: int) -> socket.socket:
    """Listen on a port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


def greet(server: socket.socket, seconds: float = LISTEN_SECONDS) -> None:
    """Greet every connection, until time is up or the server is closed."""
    until = time.monotonic() + seconds
    try:
        while (left := until - time.monotonic()) > 0:
            server.settimeout(left)
            connection, _ = server.accept()
            with connection:
                connection.sendall(GREETING)
    except OSError:
        return
    finally:
        server.close()


def reach(address: str, port: int, patience: float = PATIENCE_SECONDS) -> str:
    """Why there is no greeting at an address; empty = there is one."""
    until = time.monotonic() + patience
    while (trouble := _ask(address, port)) and time.monotonic() <= until:
        time.sleep(0.2)
    return trouble


def _ask(address: str, port: int) -> str:
    try:
        with socket.create_connection((address, port), timeout=CONNECT_SECONDS) as connection:
            greeting = connection.recv(len(GREETING))
    except OSError as error:
        return str(error)
    return "" if greeting == GREETING else "something else answers there, or nothing"


def _main() -> None:
    """`listen PORT`, or `reach` with pairs of address and port as JSON; answers likewise."""
    if sys.argv[1] == "listen":
        greet(listen("", int(sys.argv[2])))
        return
    pairs = json.loads(sys.argv[2])
    with ThreadPoolExecutor(max(1, len(pairs))) as pool:
        print(json.dumps(list(pool.map(lambda pair: reach(*pair), pairs))))


if __name__ == "__main__":
    _main()
