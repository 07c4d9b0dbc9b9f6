"""Finds the cause of a failed start in an engine's log.

The cause is the first recognized error, never the last line of the log.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable


class LogCause(NamedTuple):
    """A cause, and the regular expression that finds it in a line of the log."""

    pattern: str
    cause: Cause
    suggestion: str = ""
    """Suggestion; may use the pattern's named groups. Empty = the cause's own suggestion."""


TAIL_LINES, TAIL_CHARACTERS = 200, 2000
"""Most lines of the log in a failure, and most characters of each line."""

UNREADABLE_FILE = (
    "The engine's user may not read {file}: allow it (`chmod -R a+rX` on the model), or set"
    " `engine.container.user` to the owner of the model."
)
"""Suggestion for a file of the model that only another user may read."""

COMMON_CAUSES: tuple[LogCause, ...] = (
    LogCause(
        pattern=r"^moorage-prepare: error: (?P<program>\S+) is not in the image",
        cause=Cause.PROGRAM_MISSING,
        suggestion="{program} is not in the image: set `engine.image` or `engine.entrypoint`.",
    ),
    LogCause(pattern=r"^moorage-prepare: error: ", cause=Cause.PACKAGES_NOT_INSTALLED),
    LogCause(pattern=r"(?i)address already in use|Errno 98", cause=Cause.PORT_TAKEN),
    LogCause(pattern=r"(?i)No space left on device", cause=Cause.DISK_FULL),
    LogCause(
        pattern=r"(?i)out of memory|OutOfMemoryError|Cannot allocate memory|bad_alloc",
        cause=Cause.ENGINE_OUT_OF_MEMORY,
    ),
    LogCause(
        pattern=r"error: unrecognized arguments: (?P<flag>.*)|No such option:? (?P<option>\S+)",
        cause=Cause.ENGINE_BAD_ARGUMENT,
    ),
    LogCause(
        pattern=r"error: argument (?P<flag>\S+): .*|Invalid value for '(?P<option>[^']*)'",
        cause=Cause.ENGINE_BAD_ARGUMENT,
    ),
    LogCause(
        pattern=r"does not recognize this architecture|is not supported for now",
        cause=Cause.ENGINE_UNSUPPORTED_MODEL,
    ),
    LogCause(pattern=r"(?i)no module named '?(?P<module>[\w.]+)", cause=Cause.PROGRAM_MISSING),
    LogCause(
        pattern=r"PermissionError: \[Errno 13\] [^:]*: '(?P<file>/models/[^']*)'",
        cause=Cause.ENGINE_EXITED,
        suggestion=UNREADABLE_FILE,
    ),
)
"""Log patterns with the same meaning in every engine."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_PROCESSES = r"(\(([\w-]+ )?pid=\d+(, ip=[^)]*)?\)\s+)*"
"""Process names: `(EngineCore pid=24)`, and `(RayWorkerWrapper pid=7, ip=...)` of Ray's workers."""

_PREFIX = re.compile(rf"^{_PROCESSES}(ERROR [\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""vLLM's prefix of each line: process, level, time, place in the code."""

_HARMLESS = re.compile(rf"^\s*{_PROCESSES}(DEBUG|INFO|WARNING)\b")
"""Lines below level ERROR, which healthy starts have too."""

_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception)\b\s*:|\S*\s?error:|Value error, )")

_WRAPPERS = (
    "Engine core initialization failed",
    "Worker failed with error",
    "See root cause above",
    "EngineCore encountered an issue",
    "validation error for",
)
"""Texts of errors that only report another error."""


def diagnose(log: str, causes: Iterable[LogCause], fallback: Cause, detail: str) -> Failure:
    """Turn the log of a failed engine into a failure with its cause.

    Args:
        log: The last lines of the log: many, since each worker's traceback hides the cause.
        causes: The engine's own patterns, which are tried before the common ones.
        detail: What was observed from outside, such as the exit code.
    """
    plain = [printable(line) for line in COLOUR.sub("", log).splitlines()]
    lines = [line.strip() for line in plain if not _HARMLESS.match(line)]
    for known in (tuple(causes), COMMON_CAUSES):
        for line in lines:
            for entry in known:
                if match := re.search(entry.pattern, line):
                    return _recognised(entry, match, line, detail, log)
    first = _first_error(lines)
    excerpt = f"; the first error in the log: {first[:300]}" if first else ""
    return Failure(fallback, f"{detail}{excerpt}", log_tail=last_lines(log), evidence=first)


def last_lines(log: str) -> str:
    """The end of a log for a failure, without control characters."""
    lines = COLOUR.sub("", log).splitlines()[-TAIL_LINES:]
    return "\n".join(printable(line[:TAIL_CHARACTERS]) for line in lines)


def _recognised(entry: LogCause, match: re.Match[str], line: str, detail: str, log: str) -> Failure:
    named = {name: value for name, value in match.groupdict().items() if value}
    return Failure(
        entry.cause,
        f"{detail}; the log says: {line[:300]}",
        suggestion=entry.suggestion.format_map(named) if entry.suggestion else None,
        log_tail=last_lines(log),
        evidence=line,
        named=named,
    )


def _first_error(lines: Iterable[str]) -> str:
    """The first error other than a wrapper of another; its message may be on the next line."""
    texts = [_PREFIX.sub("", line).strip() for line in lines]
    for at, text in enumerate(texts, 1):
        if _ERROR.search(text) and not any(wrapper in text for wrapper in _WRAPPERS):
            message = next(filter(None, texts[at:]), "") if text.endswith(":") else ""
            return f"{text} {message}".strip()
    return ""
