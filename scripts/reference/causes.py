"""The page about failures, from the table of causes and the texts that engines log."""

from __future__ import annotations

import re

from moorage.common.failures import Cause, ExitCode
from moorage.engines.registry import ENGINES
from moorage.readiness.diagnosis import COMMON_CAUSES, LogCause
from scripts.reference.tables import table

HEAD = """# Troubleshooting by cause

Made by `make docs` from `moorage/common/causes.py` and the log texts of the engines. Do not edit by
hand.

A command that fails prints what went wrong, its cause in parentheses, what was found and what to
do:

```text
The model fits nowhere (no-fit)
...
What to do: See the reason for each host above.
```

Find the cause in the table, or search this page for a line of the engine's log. `moorage explain
CAUSE` prints the same on the terminal. `moorage show NAME` has the whole record of a release that
failed, and `moorage logs NAME` the last lines of its engine.

In the advice, *above* is what the command has printed, and words in braces are taken from the log.
"""

CLASSES = {
    ExitCode.BAD_INPUT: "Exit code 2: bad input",
    ExitCode.NO_FIT: "Exit code 3: the model fits nowhere",
    ExitCode.SOURCE: "Exit code 4: the source of the model",
    ExitCode.IMAGE: "Exit code 5: the image",
    ExitCode.ENGINE: "Exit code 6: the engine",
    ExitCode.BUSY: "Exit code 7: busy",
    ExitCode.MACHINE: "Exit code 8: the machine",
    ExitCode.CANCELLED: "Exit code 130: interrupted",
}
"""Headings of the classes of causes."""

SHOWN_BY = "Texts in the engine's log that show it, with what to do where more is known:"


def troubleshooting() -> str:
    """The page: a table of all causes, and a section for each."""
    parts = [HEAD, _overview()]
    for code, heading in CLASSES.items():
        found = [cause for cause in Cause if cause.exit_code == code]
        parts += [f"## {heading}\n", *map(_section, found)]
    return "\n".join(parts)


def _overview() -> str:
    rows = [
        (
            f"[`{cause}`](#{cause})",
            str(int(cause.exit_code)),
            "yes" if cause.retryable else "no",
            cause.summary,
        )
        for cause in Cause
    ]
    shown = table(("cause", "exit code", "tried again", "meaning"), rows)
    return f"## Failures and exit codes\n\n{shown}"


def _section(cause: Cause) -> str:
    retried = " The step is tried again by itself." if cause.retryable else ""
    text = f"### {cause}\n\n**{cause.summary}.**{retried}\n\n{cause.suggestion}\n"
    lines = [_line(entry, engines) for entry, engines in LOG_TEXTS.items() if entry.cause == cause]
    return f"{text}\n{SHOWN_BY}\n\n{''.join(lines)}" if lines else text


def _line(entry: LogCause, engines: list[str]) -> str:
    texts = " or ".join(f"`` {text} ``" for text in readable(entry.pattern))
    advice = f": {entry.suggestion}" if entry.suggestion else ""
    return f"* {texts} ({', '.join(engines)}){advice}\n"


def readable(pattern: str) -> list[str]:
    """The alternatives of a regular expression as readable texts.

    A named group becomes its name in braces, and escapes are removed. Other syntax stays: a search
    still finds the words around it.
    """
    named = re.sub(r"\(\?P<(\w+)>(?:\\.|\[[^]]*\]|[^()\\])*\)", r"{\1}", pattern)
    texts, depth = [""], 0
    for part in re.findall(r"\\.|\[[^]]*\]|.", named.removeprefix("(?i)")):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            texts.append("")
        else:
            texts[-1] += part
    plain = (re.sub(r"\\([^\w\s])", r"\1", text) for text in texts)
    return [re.sub(r"\.\*\??", "...", text).removeprefix("^").strip() for text in plain]


def _log_texts() -> dict[LogCause, list[str]]:
    """Each pattern for logs, and the engines whose logs may match it."""
    texts: dict[LogCause, list[str]] = {entry: ["every engine"] for entry in COMMON_CAUSES}
    for name, engine in ENGINES.items():
        for entry in engine.log_causes:
            texts.setdefault(entry, []).append(name.value)
    return texts


LOG_TEXTS = _log_texts()
