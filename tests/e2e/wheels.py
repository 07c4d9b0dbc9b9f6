"""A package index of single wheels, for containers on Docker's own bridge."""

from __future__ import annotations

import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.docker_bridge import bridge_address


class WheelIndex:
    """Serves a folder in the form of a simple index while it is entered.

    Attributes:
        requests: Paths of all requests.
    """

    def __init__(self, folder: Path) -> None:
        self.requests: list[str] = []
        self._folder = folder
        handler = partial(_Handler, self.requests, directory=str(folder))
        self._server = ThreadingHTTPServer((bridge_address(), 0), handler)

    def __enter__(self) -> WheelIndex:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What tells an installer about this index."""
        host, port = self._server.server_address[:2]
        return {"PIP_INDEX_URL": f"http://{host!s}:{port}/simple", "PIP_TRUSTED_HOST": str(host)}

    def add(self, name: str, version: str, code: str, entry_points: str) -> None:
        """Build a wheel of one module and list it."""
        module = name.replace("-", "_")
        listed = self._listed(name)
        wheel = listed / f"{module}-{version}-py3-none-any.whl"
        info = f"{module}-{version}.dist-info"
        files = {
            f"{module}.py": code,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": entry_points,
        }
        record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, content in {**files, f"{info}/RECORD": record}.items():
                archive.writestr(path, content)
        _list(wheel)

    def fetch(self, name: str) -> None:
        """List a real wheel, from wherever pip takes packages here; without what it requires."""
        listed = self._listed(name)
        fetch = ("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", name)
        subprocess.run([sys.executable, *fetch, "--dest", listed], check=True, capture_output=True)
        (wheel,) = listed.iterdir()
        _list(wheel)

    def _listed(self, name: str) -> Path:
        folder = self._folder / "simple" / name
        folder.mkdir(parents=True)
        return folder


def _list(wheel: Path) -> None:
    wheel.with_name("index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, requests: list[str], *args: Any, directory: str) -> None:
        self._requests = requests
        super().__init__(*args, directory=directory)

    def log_message(self, *_: object) -> None:
        self._requests.append(self.path)
