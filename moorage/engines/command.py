"""Command lines: placeholders, and what is left of the derived flags beside the user's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from moorage.engines.launch import Flag
from moorage.spec.arguments import is_written

PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}")
OTHER_NAMES = {
    "worker_ip": "host_ip",
    "gpu_count": "accelerator_count",
    "gpu_ids": "accelerator_ids",
}
"""GPUStack's names of placeholders, so that its run commands can be taken over."""


def filled(
    words: Iterable[str], values: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Words with their placeholders filled in; a word stays one word, whatever is put into it.

    Args:
        words: Words that may hold `{{name}}`.
        values: What the launch knows.
        environment: The user's variables; they count where the launch knows no such name.

    Returns:
        The same number of words. A name that nobody knows is left as it is: it may be meant for
        the engine, as in a chat template.
    """
    known = {**environment, **values}
    known.update({other: values[name] for other, name in OTHER_NAMES.items() if name in values})
    return tuple(
        PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), word) for word in words
    )


def kept_flags(
    flags: Iterable[Flag], words: Sequence[str], aliases: Mapping[str, tuple[str, ...]]
) -> tuple[Flag, ...]:
    """Derived flags without those that the user decides about in any writing.

    Args:
        flags: What was derived.
        words: The user's words.
        aliases: Other names of the engine's options.
    """
    return tuple(
        flag
        for flag in flags
        if not is_written(words, flag.tokens[0], *aliases.get(flag.tokens[0], ()))
    )
