"""A fleet to play with: `make fleet`, or `python -m tests.fleet --hosts 3 --image NAME ...`."""

from __future__ import annotations

import argparse
import signal

from tests.fleet.fleet import FleetHost, TestFleet


def main() -> None:
    """Start it, say how it is reached, and keep it until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--image", action="append", default=[], help="given to every host")
    request = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with TestFleet(request.hosts, images=request.image) as fleet:
        for host in fleet.hosts:
            print(_described(host))
        print(f"fleet file:   {fleet.fleet_file(fleet.folder / 'fleet.yaml', lambda h: h.unix)}")
        print(f"ssh key:      {fleet.key}\nknown hosts:  {fleet.known_hosts}")
        print(
            f"certificates: {fleet.certificates.client}\nCtrl-C takes all of it away.", flush=True
        )
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("\ntaking it away ...")


def _described(host: FleetHost) -> str:
    return f"{host.name}: {host.unix} {host.tls} {host.ssh}"


if __name__ == "__main__":
    main()
