"""Through which door a spec came in."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Value


class Channel(StrEnum):
    """Who brought a spec: the user of the command line, or somebody through Prefect's API."""

    CLI = "cli"
    API = "api"


class Submission(Value):
    """How the spec of a release was submitted.

    Records of before do not tell: they count as the command line's.

    Attributes:
        channel: Through which door. A redeploy, a rollback or a reconcile leaves it as it was.
        owner: Whom its replicas and accelerators are counted for.
    """

    channel: Channel = Channel.CLI
    owner: str = ""
