"""An object store on this machine: moto's server, which records each request."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

PART = 5 * 1024**2
"""The smallest part that S3 accepts."""


@dataclass(frozen=True)
class BucketRequest:
    """One request: `signed` says whether and where it has a signature."""

    method: str
    path: str
    range: str
    signed: str
    client: str


class Bucket:
    """One bucket. Use it as a context manager.

    Args:
        name: Its name.
        address: Address on which the store listens.

    Attributes:
        requests: Its requests.
        refused: Error status of every further answer; 0 = normal answers.
    """

    def __init__(self, name: str = "models", address: str = "127.0.0.1") -> None:
        self.name = name
        self.requests: list[BucketRequest] = []
        self.refused = 0
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(address, 0, self._recorded, threaded=True)
        self.url = f"http://{address}:{self._server.port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Bucket:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self.s3: Any = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", **keys)
        self.s3.create_bucket(Bucket=self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.refused = 0
        for item in self.s3.list_objects_v2(Bucket=self.name).get("Contents", ()):
            self.s3.delete_object(Bucket=self.name, Key=item["Key"])
        self.s3.delete_bucket(Bucket=self.name)
        self._server.shutdown()

    def put(self, prefix: str, files: Mapping[str, bytes], **fields: Any) -> None:
        """Store files below a prefix."""
        for name, data in files.items():
            self.s3.upload_fileobj(
                io.BytesIO(data),
                self.name,
                f"{prefix}/{name}",
                ExtraArgs=fields,
                Config=boto3.s3.transfer.TransferConfig(PART, multipart_chunksize=PART),
            )

    def got(self, file: str) -> list[BucketRequest]:
        """Requests for the content of a file."""
        return [one for one in self.requests if one.method == "GET" and one.path.endswith(file)]

    def _recorded(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        header = environ.get("HTTP_AUTHORIZATION", "")
        signed = "header" if header else "url" if "Signature" in environ["QUERY_STRING"] else ""
        self.requests.append(
            BucketRequest(
                environ["REQUEST_METHOD"],
                environ["PATH_INFO"],
                environ.get("HTTP_RANGE", ""),
                signed,
                environ["REMOTE_ADDR"],
            )
        )
        if self.refused:
            start_response(f"{self.refused} Refused", [("Content-Length", "0")])
            return [b""]
        found: Iterable[bytes] = self._app(environ, start_response)
        return found
