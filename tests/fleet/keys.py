"""Certificates and keys of a fleet, made afresh each time."""

from __future__ import annotations

from pathlib import Path

import trustme

from tests.fleet.commands import run


class Certificates:
    """An authority of the fleet's own, with one client that it knows.

    Attributes:
        client: Folder with `ca.pem`, `cert.pem` and `key.pem`, as Docker's clients want it.
    """

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.client = folder / "client"
        self._write(self.client, "client")

    def server(self, folder: Path, address: str) -> Path:
        """Make the files of a server with that address; gives their folder."""
        self._write(folder, address)
        return folder

    def _write(self, folder: Path, identity: str) -> None:
        folder.mkdir(parents=True)
        made = self._authority.issue_cert(identity)
        self._authority.cert_pem.write_to_path(folder / "ca.pem")
        made.private_key_pem.write_to_path(folder / "key.pem")
        (folder / "key.pem").chmod(0o600)
        for pem in made.cert_chain_pems:
            pem.write_to_path(folder / "cert.pem", append=True)


def make_ssh_key(path: Path) -> Path:
    """Make a key pair without a passphrase; gives the private one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "moorage-test", "-f", path)
    return path
