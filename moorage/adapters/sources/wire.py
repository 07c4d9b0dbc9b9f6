"""Requests to the hub, through huggingface_hub. What goes wrong on the wire becomes a `Failure`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub import HfApi, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.errors import HFValidationError

from moorage.adapters.sources.answers import HTTP_ERRORS, failure_of
from moorage.failures import Cause, Failure

TIMEOUT_SECONDS = 30.0


class Wire:
    """The way to one repository on the hub.

    Args:
        repo: `org/repo`.
        endpoint: Address of the hub.
        token: Access token. It is sent to the endpoint and appears nowhere else.
        timeout: Seconds to wait for a connection and for each next byte.

    Raises:
        Failure: `SOURCE_UNAUTHORIZED` when the token cannot be one.
    """

    def __init__(
        self,
        repo: str,
        endpoint: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.repo = repo
        self._endpoint = endpoint.rstrip("/")
        self._token = _usable(token)
        self._timeout = timeout

    def model_info(self, revision: str) -> Any:
        """Ask what the repository holds at a revision; empty = the default branch.

        Returns:
            The hub client's `ModelInfo`.

        Raises:
            Failure: As `failure_of` says; `HUB_UNAVAILABLE` also when the answer is not the hub's.
        """
        # `False` and not `None`, which would send a token that lies around on this machine.
        api = HfApi(endpoint=self._endpoint, token=self._token or False, library_name="moorage")
        asked = revision or None
        try:
            with self._translating(revision):
                return api.model_info(
                    self.repo, revision=asked, files_metadata=True, timeout=self._timeout
                )
        except HFValidationError as error:
            raise Failure(Cause.SOURCE_MISSING, str(error)) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.not_a_hub(f"{type(error).__name__} {error}") from None

    @contextmanager
    def file_range(self, commit: str, name: str, start: int, stop: int) -> Iterator[Any]:
        """Ask for a file from one offset up to another, and read the answer inside the block.

        Yields:
            The response of the hub client's HTTP library; it may hold the whole file.

        Raises:
            Failure: As `failure_of` says, for errors while reading too.
        """
        url = hf_hub_url(self.repo, name, revision=commit, endpoint=self._endpoint)
        # Compressed, neither sizes nor offsets would be those of the file.
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        with (
            self._translating(commit, name),
            get_session().stream(
                "GET", url, headers=headers, timeout=self._timeout, follow_redirects=True
            ) as response,
        ):
            hf_raise_for_status(response)
            yield response

    def not_a_hub(self, why: str) -> Failure:
        """Make the failure for an answer that no hub would give."""
        detail = f"{self._endpoint} does not answer like a hub about {self.repo}: {why}"
        return Failure(Cause.HUB_UNAVAILABLE, detail)

    @contextmanager
    def _translating(self, revision: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except HTTP_ERRORS as error:
            failure = failure_of(error, repo=self.repo, revision=revision, name=name)
            detail = failure.detail
            if self._token:  # an answer may quote the request
                detail = detail.replace(self._token, "***")
            raise Failure(failure.cause, detail) from None


def _usable(token: str | None) -> str:
    token = (token or "").strip()
    # The HTTP library would refuse such a header, and quote it.
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise Failure(Cause.SOURCE_UNAUTHORIZED, "the token holds characters that no token has")
    return token
