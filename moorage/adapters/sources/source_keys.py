"""What sources ask for before they give: a hub's token, the keys of an object store."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from moorage.adapters.secrets import read_secrets, remember
from moorage.spec import ModelSpec

HUB_TOKEN = "HF_TOKEN"
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by kind of source; without a key, requests are anonymous.

    Attributes:
        hub: Access token of the hub.
        s3: Key id, secret key and session token of an object store; empty = what AWS's own tools
            would find (environment, `~/.aws`, the machine's role), else unsigned requests.
    """

    hub: str | None = field(default=None, repr=False)
    s3: tuple[str, ...] = field(default=(), repr=False)


NO_KEYS = Keys()


def read_keys(spec: ModelSpec) -> Keys:
    """The keys that a spec names as secrets; of the hub, else the environment's.

    Raises:
        Failure: `SECRET_MISSING`.
    """
    token = _secret(spec, HUB_TOKEN) or os.environ.get(HUB_TOKEN)
    if token:
        remember({HUB_TOKEN: token})
    named = [_secret(spec, name) or "" for name in S3_KEYS]
    return Keys(hub=token, s3=tuple(named) if named[0] else ())


def _secret(spec: ModelSpec, variable: str) -> str | None:
    name = spec.secrets.get(variable)
    return read_secrets([name])[name] if name else None
