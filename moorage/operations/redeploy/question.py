"""What a person is asked before a deployment that needs approval."""

from __future__ import annotations

from moorage.common.values import Value

SERVER_SECONDS = 60
"""How much longer the server lets a run wait: it would end it first, without a cause or an event.

Only a run whose process is gone is left to that."""


class Question(Value):
    """What shall be done, and how long it may take to answer.

    Attributes:
        models: Names of the models that it is about.
        plan: What would be done, as Markdown.
        seconds: How long to wait; no answer means no.
    """

    models: tuple[str, ...]
    plan: str
    seconds: int


class Answer(Value):
    """What a person said.

    Attributes:
        approve: Whether it shall be done.
        note: Why, in their words.
    """

    approve: bool
    note: str = ""
