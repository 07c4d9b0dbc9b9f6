"""`moorage endpoint` and `chat`: where a model answers, its key, and an answer."""

from typing import Annotated, Any

import typer

from moorage.adapters.engines.engine_http import NoAnswer, Question, ask_engine_now
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets, redact
from moorage.cli.options import ApiKey, AsJson, ModelName, open_ledger, unknown_release
from moorage.cli.output import dump, print_table
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError
from moorage.common.values import LARGEST
from moorage.engines.api_key import key_secret
from moorage.engines.registry import ENGINES
from moorage.gateway.gateway import Gateway
from moorage.readiness.answers import shorten
from moorage.readiness.protocol import triton_request
from moorage.releases.release import ReleaseRow
from moorage.releases.routing import models_listing
from moorage.spec import Mode

ANSWER_SECONDS = 300


def endpoint(
    name: Annotated[str, typer.Argument(help="Name of the model. Omit it with --all.")] = "",
    every: Annotated[bool, typer.Option("--all", help="List every running model.")] = False,
    direct: Annotated[
        bool, typer.Option("--direct", help="The replicas' own addresses, not the gateway's.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --all as OpenAI's `/v1/models` lists.")
    ] = False,
) -> None:
    """Print the base URL of a model for OpenAI clients: of the gateway, else of each replica.

    Fails when the model is not running.
    """
    if bool(name) == every:
        raise Failure(Cause.BAD_SETTING, "pass either a model or --all")
    ledger = open_ledger()
    gateways = [] if direct else gateway_addresses(ledger)
    found = ledger.routes.current()
    held = (*found.sleepers, *found.making_room) if gateways else ()  # requests for them wait there
    routes = [one for one in (*found.serving, *held) if name in ("", one.model)]
    if name and not routes:
        raise unknown_release(ledger, name, f"{name} is not running")
    listing = models_listing(routes)
    for entry in listing["data"]:
        entry["gateways"] = gateways
    if every and not as_json:
        rows = [
            (e["id"], e["release"], e["state"], "\n".join(gateways or e["endpoints"]))
            for e in listing["data"]
        ]
        return print_table(("model", "release", "state", "endpoint"), rows, "No model is running.")
    if as_json:
        return dump(listing if every else listing["data"][0])
    for url in gateways or listing["data"][0]["endpoints"]:
        typer.echo(url)
    return None


def gateway_addresses(ledger: Ledger) -> list[str]:
    """Base URLs of the gateways that follow the ledger, for OpenAI clients."""
    return [f"{one.url}/v1" for one in ledger.gateways.all() if one.epoch and not one.problem]


def key_of(row: ReleaseRow, given: str = "") -> str:
    """The key to ask a release with: what the user gave, else its own; empty = it asks for none.

    Raises:
        Failure: `SECRET_MISSING` when this machine cannot read it.
    """
    name = "" if given else _key_name(row)
    return read_secrets([name])[name] if name else given


def _key_name(row: ReleaseRow) -> str:
    plan = row.release.plan if row.release else None
    return key_secret(plan, ENGINES[plan.engine].api_key_variable) if plan else ""


def show_key(name: ModelName, as_json: AsJson = False) -> None:
    """Print the API key that the engine of a running model asks for."""
    row = running_release(name)
    secret = _key_name(row)
    if not secret:
        raise Failure(
            Cause.SECRET_MISSING,
            f"{row.id} needs no key",
            suggestion="A vLLM that other machines can reach needs a key unless"
            " `engine.api_key: none` is set. To add a key, retire the model and deploy it again.",
        )
    value = key_of(row)
    if as_json:
        return dump({"release": row.id, "secret": secret, "key": value})
    return typer.echo(value)


def chat(
    name: ModelName,
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    max_tokens: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Maximum length of the answer in tokens.")
    ] = 64,
    api_key: ApiKey = "",
    as_json: AsJson = False,
) -> None:
    """Send a prompt to a model: through the gateway, which also wakes it, else to a replica."""
    ledger = open_ledger()
    gateway = next(filter(lambda one: _is_open(one, api_key), ledger.gateways.all()), None)
    served = ledger.releases.running(name)
    if gateway and (served is None or _speaks_openai(served)):
        row = ledger.releases.asleep(name) or running_release(name)
        url, key = gateway.url, api_key
    else:
        row = running_release(name)
        url, key = row.serving[0].endpoint, key_of(row, api_key)
    content, text = _answer(row, url, prompt, max_tokens, key, as_json=as_json)
    if as_json:
        return dump(content)
    return typer.echo(printable(text))


def _is_open(gateway: Gateway, api_key: str) -> bool:
    """Whether a gateway answers this machine, with that key or without one."""
    options = gateway.options
    follows = gateway.epoch and not gateway.problem and not options.is_encrypted
    return bool(follows and (api_key or not options.requires_key))


def _answer(
    row: ReleaseRow, base: str, prompt: str, max_tokens: int, api_key: str, *, as_json: bool
) -> tuple[Any, str]:
    """The body of a model's answer, and the text in it; as JSON it may hold none."""
    profile = row.release.profile if row.release else None
    if profile and profile.mode != Mode.COMPLETION:
        raise Failure(
            Cause.BAD_ANSWER, f"{row.model} is a model for {profile.mode}, which cannot chat"
        )
    path, body = _request(row, prompt, max_tokens)
    url = f"{base}{path}"
    question = Question(url, "POST", body, api_key=api_key)
    try:
        back = ask_engine_now(question, ANSWER_SECONDS)
        if back.status != 200:
            detail = f"{url}: HTTP {back.status}: {redact(shorten(back.text))}"
            raise Failure(Cause.BAD_ANSWER, detail)
        content = back.json()
        return content, "" if as_json else _text(content)
    except NoAnswer as error:
        raise Failure(Cause.BAD_ANSWER, f"{url}: {error}") from error
    except JsonError as error:
        raise Failure(Cause.BAD_ANSWER, f"{url}: the answer {error}") from error


def _speaks_openai(row: ReleaseRow) -> bool:
    return all(one.speaks_openai for one in row.serving)


def _request(row: ReleaseRow, prompt: str, max_tokens: int) -> tuple[str, dict[str, Any]]:
    """The path and body that suit the interface of its engine."""
    if not _speaks_openai(row):
        return triton_request(row.model, prompt, {"max_tokens": max_tokens})
    profile = row.release.profile if row.release else None
    talks = profile is None or profile.has_chat_template
    messages = [{"role": "user", "content": prompt}]
    prompted = {"messages": messages} if talks else {"prompt": prompt}
    path = "/v1/chat/completions" if talks else "/v1/completions"
    return path, {"model": row.model, "max_tokens": max_tokens, "stream": False, **prompted}


def _text(content: Any) -> str:
    """The text in an answer of any path; raises `JsonError` where there is none."""
    try:
        if "text_output" in content:
            return str(content["text_output"])
        choice = content["choices"][0]
        return str(choice["message"]["content"] if "message" in choice else choice["text"])
    except (KeyError, IndexError, TypeError):
        raise JsonError(f"contains no text: {redact(shorten(content))}") from None


def running_release(name: str) -> ReleaseRow:
    """The release that serves a model; raises `UNKNOWN_RELEASE` where none does."""
    ledger = open_ledger()
    row = ledger.releases.running(name)
    if row is None:
        raise unknown_release(ledger, name, f"{name} is not running")
    return row
