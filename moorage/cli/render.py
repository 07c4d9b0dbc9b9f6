"""What the commands print about releases."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.markup import escape

from moorage.adapters.engines.engine_http import NoAnswer, Question, ask_engine_now
from moorage.adapters.hosts.observation import Observation
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.secrets.redacting import redacted
from moorage.adapters.secrets.secrets import learn_secrets
from moorage.adapters.system.settings import Settings
from moorage.cli.flows import Outcome
from moorage.cli.output import dump, out, print_table
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError
from moorage.engines.api_key import secrets_of
from moorage.engines.launch import Workload
from moorage.readiness.protocol import shorten
from moorage.releases.release import Release, ReleaseRow, ReleaseState
from moorage.reports.document import Document
from moorage.reports.record import plan_document, release_document
from moorage.spec import Mode

ANSWER_SECONDS = 300


class Seen(NamedTuple):
    """What was seen of a release: whether all that it runs is alive, and in words."""

    alive: bool
    detail: str


def deployed(outcome: Outcome[Release], *, as_json: bool) -> None:
    """What a deploy did, and where the release answers."""
    release = outcome.result
    if as_json:
        content = {"outcome": outcome.name.lower(), "message": outcome.message}
        return dump({**content, "release": release.model_dump(mode="json")})
    if outcome.name == "Unchanged":
        out.print(outcome.message, highlight=False, soft_wrap=True)
    else:
        out.print(
            f"[bold green]{release.id}[/] serves [bold]{release.model}[/]",
            highlight=False,
            soft_wrap=True,
        )
    for workload in release.serving:
        out.print(f"  {workload.endpoint}/v1", highlight=False, soft_wrap=True)
    for told in _told(release):
        out.print(f"[yellow]  {escape(told)}", highlight=False, soft_wrap=True)
    hint = f"`moorage show {release.id}` tells why; `moorage retire {release.model}` ends it"
    out.print(hint, style="dim", highlight=False, soft_wrap=True)
    return None


def planned(outcome: Outcome[Release], *, as_json: bool) -> None:
    """What a deploy would run, or that it would change nothing."""
    if outcome.name == "Unchanged" and not as_json:
        return out.print(f"{outcome.message}: a deploy would change nothing", soft_wrap=True)
    return record(outcome.result, as_json=as_json)


def record(release: Release, *, as_json: bool) -> None:
    """A whole record or plan."""
    if as_json:
        return dump(release.model_dump(mode="json"))
    planned = not (release.readiness or release.failure)
    return page(plan_document(release) if planned else release_document(release))


def page(document: Document) -> None:
    """A document on the terminal."""
    out.rule(f"[bold]{escape(document.title)}", align="left")
    for section in document.sections:
        if section.title:
            out.print(f"\n[bold]{escape(section.title)}")
        if section.text:
            out.print(section.text, markup=False, highlight=False, soft_wrap=True)
        if section.rows:
            print_table(section.header, section.rows)
        if section.code:
            out.print(section.code, markup=False, style="dim", highlight=False, soft_wrap=True)


def retired(name: str, outcome: Outcome[str], *, as_json: bool) -> None:
    """What was stopped."""
    if as_json:
        return dump({"model": name, "release": outcome.result or None, "message": outcome.message})
    out.print(outcome.message, highlight=False, soft_wrap=True)
    return None


def observed(row: ReleaseRow, settings: Settings) -> Seen:
    """What a release's workloads are really doing."""
    if not row.workloads:
        return Seen(False, row.cause or row.state)
    alive, states = row.state != ReleaseState.ERROR, []
    for workload in row.workloads:
        runtime = runtime_for(workload.runtime, workload.address, settings)
        try:
            seen = runtime.observe(workload)
        except Failure as failure:
            alive = False
            detail = str(failure)
        else:
            alive = alive and seen.running
            detail = _where(workload) + (seen.detail if seen.running else _dead(seen))
        left = row.state == ReleaseState.ERROR
        states.append(f"left behind on {workload.host}: {detail}" if left else detail)
    return Seen(alive, "; ".join(states))


def status(rows: Sequence[tuple[ReleaseRow, Seen]], *, as_json: bool) -> None:
    """One line a model."""
    if as_json:
        told = ({"alive": seen.alive, "observed": seen.detail} for _, seen in rows)
        return dump([{**_row_json(row), **more} for (row, _), more in zip(rows, told, strict=True)])
    return print_table(
        ("model", "release", "state", "endpoint", "observed"),
        [
            (
                row.model,
                row.id,
                row.state,
                _endpoints(row),
                "\n".join((seen.detail, *(_told(row.release) if row.release else ()))),
            )
            for row, seen in rows
        ],
        empty="Nothing has been deployed yet: `moorage deploy deployments/tiny-llama.yaml`.",
    )


def history(rows: Sequence[ReleaseRow], *, as_json: bool) -> None:
    """One line a release."""
    again = [row.release.rolled_back_to if row.release else "" for row in rows]
    asked = [row.release.requester if row.release else None for row in rows]
    if as_json:
        told = zip(rows, again, asked, strict=True)
        return dump(
            [
                {
                    **_row_json(row),
                    "rolled_back_to": source,
                    "requester": one.model_dump(mode="json") if one else None,
                }
                for row, source, one in told
            ]
        )
    return print_table(
        ("release", "state", "created", "revision", "spec", "runs again", "requested by", "cause"),
        [
            (
                row.id,
                row.state,
                f"{row.created_at:%Y-%m-%d %H:%M:%S}",
                row.revision[:18],
                row.spec_digest,
                source,
                one.summary if one else "",
                row.cause,
            )
            for row, source, one in zip(rows, again, asked, strict=True)
        ],
    )


def learn(row: ReleaseRow) -> None:
    """Read the secrets of a release: only what is known can be taken out of its log."""
    learn_secrets(secrets_of(row.release.plan if row.release else None))


def log_text(row: ReleaseRow, tail: int, settings: Settings, container: str = "") -> str:
    """The log of what serves for a release, or what was kept of it.

    Args:
        row: The release.
        tail: How many lines of each.
        settings: Of this machine.
        container: Name of one workload, such as a follower; empty = those that serve.

    Raises:
        Failure: `UNKNOWN_RELEASE` when the release has no such workload.
    """
    names = [workload.name for workload in row.workloads]
    if container and container not in names:
        there = ", ".join(names) or "nothing"
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} runs no {container}, but {there}")
    parts = [
        runtime_for(workload.runtime, workload.address, settings).logs(workload, tail)
        for workload in row.workloads
        if (workload.name == container if container else workload.serves)
    ]
    if not row.workloads and row.release and row.release.failure:
        parts = ["\n".join(row.release.failure.log_tail.splitlines()[-tail:])]
    return "\n".join(printable(part.rstrip("\n"), coloured=True) for part in parts)


def new_lines(before: str, now: str) -> str:
    """What a longer log has beyond a shorter one."""
    last = before.splitlines()[-1:] or [""]
    _, found, rest = now.rpartition(last[0])
    return rest.lstrip("\n") + "\n" if found and rest.strip() else ""


def answer(row: ReleaseRow, prompt: str, max_tokens: int, api_key: str, *, as_json: bool) -> None:
    """Ask a model, and print what it says."""
    profile = row.release.profile if row.release else None
    if profile and profile.mode != Mode.COMPLETION:
        raise Failure(Cause.BAD_ANSWER, f"{row.model} serves {profile.mode}, it does not talk")
    talks = profile is None or profile.has_chat_template
    path = "/v1/chat/completions" if talks else "/v1/completions"
    url = f"{row.serving[0].endpoint}{path}"
    messages = [{"role": "user", "content": prompt}]
    asked = {"messages": messages} if talks else {"prompt": prompt}
    body = {"model": row.model, "max_tokens": max_tokens, "stream": False, **asked}
    question = Question(url, "POST", body, api_key=api_key)
    try:
        back = ask_engine_now(question, ANSWER_SECONDS)
        if back.status != 200:
            detail = f"{url}: HTTP {back.status}: {redacted(shorten(back.text))}"
            raise Failure(Cause.BAD_ANSWER, detail)
        content = back.json()
        text = "" if as_json else _text(content)
    except NoAnswer as error:
        raise Failure(Cause.BAD_ANSWER, f"{url}: {error}") from error
    except JsonError as error:
        raise Failure(Cause.BAD_ANSWER, f"{url}: the answer {error}") from error
    if as_json:
        return dump(content)
    sys.stdout.write(f"{printable(text)}\n")
    return None


def _text(content: Any) -> str:
    """What a model says, in the answer to a conversation or to a text.

    Raises:
        JsonError: It says nothing.
    """
    try:
        choice = content["choices"][0]
        return str(choice["message"]["content"] if "message" in choice else choice["text"])
    except (KeyError, IndexError, TypeError):
        raise JsonError(f"holds no text: {redacted(shorten(content))}") from None


def _where(workload: Workload) -> str:
    """Which part of a replica it is, where it is not the one that answers."""
    return "" if workload.serves else f"{workload.role} on {workload.host}: "


def _dead(seen: Observation) -> str:
    """An engine that has ended is dead, whatever it ended with: vLLM exits with 0 when it dies."""
    code = "" if seen.exit_code is None else f", exit code {seen.exit_code}"
    return f"dead: {seen.detail}{code}"


def _told(release: Release) -> tuple[str, ...]:
    """What a person should know about a release that serves: it is not quite what was planned."""
    corrected = (f"second try: {one.summary}" for one in release.corrections)
    return (*corrected, *(text for one in release.facts for text in one.surprises))


def _row_json(row: ReleaseRow) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude={"release"})


def _endpoints(row: ReleaseRow) -> str:
    return "\n".join(f"{workload.endpoint}/v1" for workload in row.serving)
