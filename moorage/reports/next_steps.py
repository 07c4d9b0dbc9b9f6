"""Next steps with a serving release: send a request, change it, retire it."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moorage.engines.api_key import is_generated, secrets_of
from moorage.engines.engine_secrets import engine_secret
from moorage.models.profile import ModelProfile
from moorage.readiness.protocol import generation, readiness_probes
from moorage.releases.release import Release
from moorage.reports.document import Section
from moorage.spec import Mode

MAX_TOKENS = 64
CLIENT_METHODS = {
    "/v1/chat/completions": "chat.completions.create",
    "/v1/completions": "completions.create",
    "/v1/embeddings": "embeddings.create",
}
"""Methods of the package `openai`, by path."""


def next_steps(release: Release) -> Section:
    """Commands to copy; empty for a release that does not serve, or not by OpenAI's protocol."""
    profile = _asked_profile(release)
    code = "\n".join(_lines(release, profile)) if profile else ""
    return Section(title="Use it", code=code) if code else Section()


def python_client(release: Release) -> Section:
    """The same request with the package `openai`; empty where it has no method for the path."""
    profile = _asked_profile(release)
    code = "\n".join(_python(release, profile)) if profile else ""
    return Section(title="From Python", code=code) if code else Section()


class Form(NamedTuple):
    """A prefilled form for a run of a deployment (`flow/deployment`)."""

    label: str
    deployment: str
    parameters: dict[str, Any]


def release_forms(release: Release) -> tuple[Form, ...]:
    """Forms for a serving release: roll back, redeploy, retire."""
    name = release.model
    back = Form(f"Roll back to {release.replaced}", "rollback-model/rollback", {"name": name})
    return (
        *((back,) if release.replaced else ()),
        Form("Redeploy it", "redeploy-models/redeploy", {"names": [name]}),
        Form("Retire it", "retire-model/retire", {"name": name}),
    )


def form_section(links: Mapping[str, str]) -> Section:
    """A section of links to forms, by label; empty without links."""
    return Section(text=" \u00b7 ".join(f"[{label}]({url})" for label, url in links.items()))


def _asked_profile(release: Release) -> ModelProfile | None:
    """The profile of a model that answers OpenAI's protocol now; else none."""
    speaks = release.serving and all(one.speaks_openai for one in release.serving)
    return release.profile if speaks and not release.failure else None


def _lines(release: Release, profile: ModelProfile) -> Iterator[str]:
    name, base = release.model, release.serving[0].endpoint
    path, body = _request(release, profile)
    key = _key(release)
    if body is not None:
        header = [f'  -H "Authorization: Bearer {key}" \\'] if key else []
        yield f"curl {shlex.quote(base + path)} \\"
        yield "  -H 'Content-Type: application/json' \\"
        yield from header
        yield f"  -d {shlex.quote(_json_lines({'model': name, **body}))}"
        yield ""
    if profile.mode == Mode.COMPLETION:
        yield f"moorage chat {name}"
    yield f"moorage show {release.id}      # why it runs as it does"
    if release.replaced:
        yield f"moorage rollback {name}    # {release.replaced} runs again"
    yield f"moorage retire {name}"


def _python(release: Release, profile: ModelProfile) -> Iterator[str]:
    path, body = _request(release, profile)
    if body is None or path not in CLIENT_METHODS:
        return
    key = "KEY" if _key(release) else "none"
    yield "from openai import OpenAI"
    yield ""
    yield f'client = OpenAI(base_url="{release.serving[0].url}", api_key="{key}")'
    yield f"answer = client.{CLIENT_METHODS[path]}("
    question = {"model": release.model, **body}
    yield from (f"    {name}={value!r}," for name, value in question.items())
    yield ")"
    yield "print(answer.to_json())"


def _json_lines(body: Mapping[str, Any]) -> str:
    """JSON with a line for each key, so that a terminal of 80 columns does not wrap them."""
    fields = (f'"{key}": {json.dumps(body[key], ensure_ascii=False)}' for key in body)
    return "{" + ",\n       ".join(fields) + "}"


def _request(release: Release, profile: ModelProfile) -> tuple[str, dict[str, Any] | None]:
    """Path and body of an example request for the model's mode; None = the body is not JSON."""
    prompt = release.spec.readiness.probe.prompt
    if profile.mode == Mode.COMPLETION:
        path, body = generation(prompt, [], MAX_TOKENS, chat=profile.has_chat_template)
        return path, {key: body[key] for key in body if key not in ("temperature", "stream")}
    probe = readiness_probes(release.spec, profile, lists_models=False)[-1]
    return probe.path, None if probe.sound else probe.body


def _key(release: Release) -> str:
    """The API key's placeholder on a command line; empty = the engine requires no key."""
    if not release.plan or not secrets_of(release.plan):
        return ""
    secret = engine_secret(release.plan)
    if is_generated(secret):
        return f"$(moorage key show {release.model})"
    return "$KEY" if secret else ""
