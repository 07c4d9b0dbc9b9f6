"""Which version of an accelerator runtime a host can run, among those that images are built for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from moorage.common.versions import major, version_key


class Fit(StrEnum):
    """How well a runtime in an image suits the host's driver."""

    FITS = "fits"
    """The driver is as new or newer: drivers run what was built for older runtimes."""

    UNKNOWN = "unknown"
    """The host's version, or the image's, is not known."""

    SAME_MAJOR = "same-major"
    """Newer than the host's, of the same major version: minor-version compatibility."""

    TOO_NEW = "too-new"
    """Newer than the host's, by a major version."""


def fit(runtime: str, host: str) -> Fit:
    """How an image's runtime suits a host's; either may be empty for not known."""
    if not runtime or not host:
        return Fit.UNKNOWN
    if version_key(runtime) <= version_key(host):
        return Fit.FITS
    return Fit.SAME_MAJOR if major(runtime) == major(host) else Fit.TOO_NEW


def pick_runtime(runtimes: Iterable[str], host: str) -> tuple[str, Fit] | None:
    """The runtime version to take, or None when none would run.

    The newest that fits; where the host's version is not known, the newest; else the newest of the
    same major version.
    """
    ordered = sorted(set(runtimes), key=version_key, reverse=True)
    for wanted in (Fit.FITS, Fit.UNKNOWN, Fit.SAME_MAJOR):
        for runtime in ordered:
            if fit(runtime, host) is wanted:
                return runtime, wanted
    return None
