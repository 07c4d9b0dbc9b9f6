"""The whole test fleet: hosts, keys, and the fleet file that describes them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from ruamel.yaml import YAML

from tests.fleet.commands import missing
from tests.fleet.daemon import TLS_PORT, Daemon
from tests.fleet.keys import Certificates, make_ssh_key
from tests.fleet.network import Link, Network
from tests.fleet.sshd import Sshd

PORTS = "18000-18039"
CHECK_SECONDS = 5


class FleetHost:
    """One host, with all ways to reach its daemon.

    Attributes:
        name: `w1`, `w2`, ...
        address: Its IP address.
        link: Its cable.
        daemon: Its Docker.
        sshd: Its SSH server.
    """

    def __init__(self, name: str, link: Link, daemon: Daemon, sshd: Sshd) -> None:
        self.name, self.address = name, link.address
        self.link, self.daemon, self.sshd = link, daemon, sshd
        self._own = set(daemon.folder.iterdir())

    def reset(self, *images: str) -> None:
        """Undo what befell it, and have some images there and nothing else that was made there."""
        self.link.mend()
        self.daemon.thaw()
        if not self.daemon.answers(CHECK_SECONDS):
            self.daemon.kill()
            self.daemon.start()
        self.daemon.clear(*images)
        self.daemon.link_images(*images)
        for path in set(self.daemon.folder.iterdir()) - self._own:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @property
    def unix(self) -> str:
        """Through its socket: no cable is involved."""
        return f"unix://{self.daemon.socket}"

    @property
    def tls(self) -> str:
        """Over TCP with certificates on both sides."""
        return f"tcp://{self.address}:{TLS_PORT}"

    @property
    def ssh(self) -> str:
        """Over SSH."""
        return f"ssh://root@{self.address}"


class TestFleet:
    """Some hosts, started together and gone together.

    Args:
        number: How many hosts.
        images: Images of this machine's own daemon that each host has.
        daemon: Further arguments of each `Daemon`.

    Attributes:
        hosts: The hosts.
        network: What they hang on; registries on its address are taken without TLS.
        certificates: Those of the client are in `certificates.client`.
        key: Private SSH key that every host lets in.
        known_hosts: File that knows every host.
    """

    __test__ = False

    def __init__(self, number: int, images: Sequence[str] = (), **daemon: Any) -> None:
        if reason := missing():
            raise RuntimeError(reason)
        self._stack = ExitStack()
        # Sockets have short names, and pytest's folders long ones.
        self.folder = Path(tempfile.mkdtemp(prefix="mfl-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self._make(number, images, daemon)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def host(self, name: str) -> FleetHost:
        """The host of that name."""
        return next(host for host in self.hosts if host.name == name)

    def fleet_file(
        self,
        path: Path,
        address: Callable[[FleetHost], str],
        among: Sequence[FleetHost] = (),
        **fields: Any,
    ) -> Path:
        """Write a fleet file.

        Args:
            path: Where.
            address: How a host is reached, such as `lambda host: host.ssh`.
            among: Hosts to name; none = all.
            fields: More fields of each host.
        """
        hosts = [
            {"name": host.name, "address": address(host), "bind": host.address, "ports": PORTS}
            | fields
            for host in among or self.hosts
        ]
        with path.open("w") as file:
            YAML().dump({"hosts": hosts}, file)
        return path

    def _make(self, number: int, images: Sequence[str], daemon: dict[str, Any]) -> None:
        self.network = Network()
        self._stack.callback(self.network.close)
        self.certificates = Certificates(self.folder / "tls")
        self.key = make_ssh_key(self.folder / "ssh" / "id")
        self.known_hosts = self.folder / "ssh" / "known_hosts"
        self.hosts = tuple(
            self._host(position, images, daemon) for position in range(1, number + 1)
        )
        self.known_hosts.write_text("".join(host.sshd.known_host for host in self.hosts))

    def _host(self, position: int, images: Sequence[str], options: dict[str, Any]) -> FleetHost:
        name = f"w{position}"
        link = self.network.link(position)
        self._stack.callback(link.close)
        folder = self.folder / name
        certificates = self.certificates.server(folder / "tls", link.address)
        daemon = Daemon(name, link, folder, certificates, self.network.net, **options)
        self._stack.callback(daemon.close)
        daemon.start_with(*images)
        sshd = Sshd(
            link.address,
            folder / "sshd",
            self.key.with_suffix(".pub"),
            daemon.socket,
            entering=link.entering,
        )
        self._stack.callback(sshd.stop)
        sshd.start()
        return FleetHost(name, link, daemon, sshd)
