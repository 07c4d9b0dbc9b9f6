"""`moorage run`: deploy a model on this machine, use it, and retire it without leftovers."""

import json
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import FileLock, Timeout

from moorage.adapters.engines.schemas import check_early
from moorage.adapters.files.safe_files import expanded
from moorage.adapters.files.specs import STDIN, load_spec, validated_spec
from moorage.adapters.hosts.local_host import installed_program, nvidia_accelerators
from moorage.adapters.system.settings import Settings
from moorage.cli.any_model import AnyModel, source_named
from moorage.cli.conversation import Conversation, read_prompt, show, talk
from moorage.cli.endpoint import key_of
from moorage.cli.flows import call_flow
from moorage.cli.interruption import heard_by
from moorage.cli.options import AsJson, Prompt, existing, open_ledger
from moorage.cli.output import dump, say
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.models.files import GGUF
from moorage.releases.release import Release
from moorage.spec import EngineName, ModelSpec, RuntimeName
from moorage.spec.one_shot import one_shot_name, one_shot_spec

FilesPattern = Annotated[str, typer.Option(help="Pattern of the weight files.")]

FOLDER = "runs"
"""Folder in the home with a lock file for each run, locked as long as its command lives."""


def run(
    model: AnyModel,
    prompt: Prompt = "",
    serve: Annotated[bool, typer.Option("--serve", help="Serve until Ctrl-C.")] = False,
    engine: Annotated[EngineName, typer.Option(help="Inference engine.")] = EngineName.AUTO,
    context: Annotated[int, typer.Option(min=0, help="Context in tokens. 0 = the model's.")] = 0,
    files: FilesPattern = "",
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer in tokens.")] = 512,
    as_json: AsJson = False,
) -> None:
    """Run a model on this machine: one answer, a conversation, or a server; then leave nothing."""
    if not (serve or prompt):
        prompt = read_prompt(answers_once=as_json, input_taken=Path(model) == STDIN)
    spec = spec_of(model, engine=engine, context=context, files=files)
    check_early(spec, Fleet(), Settings().root)
    _end_abandoned(as_json=as_json)
    with _deployed(spec, as_json=as_json) as release:
        if serve:
            return _serve(release, as_json=as_json)
        row = open_ledger().releases.get(release.id)
        base, instead = release.workloads[0].endpoint, "Use `--serve`."
        conversation = Conversation(row, base, key_of(row), max_tokens, instead)
        if as_json:
            answer = "".join(conversation.ask(prompt))
            return dump({"model": spec.source, "release": release.id, "answer": answer})
        return show(conversation, prompt) if prompt else talk(conversation)


def spec_of(model: str, **fields: Any) -> ModelSpec:
    """The spec of a model's name, file or source, with the given fields.

    Its name is new, so that it replaces no serving model.
    """
    token, path = secrets.token_hex(3), expanded(model)
    engine = fields.pop("engine", EngineName.AUTO)
    if source := source_named(model):
        content = one_shot_spec(source, token, engine=_engine(engine, source), **fields)
        return validated_spec(content, Path(model))
    if engine != EngineName.AUTO:
        fields["engine"] = {"name": engine.value}
    spec = load_spec(existing(path))
    changes = {key: value for key, value in fields.items() if value}
    content = {**spec.model_dump(mode="json", exclude_defaults=True), **changes}
    name = {"name": one_shot_name(spec.name, token)}
    return validated_spec({**content, **name}, path)


def _engine(wanted: EngineName, source: str) -> dict[str, str]:
    """The engine, as a process if it is installed here and no NVIDIA accelerator needs an image."""
    likely = wanted
    if wanted == EngineName.AUTO:
        likely = EngineName.LLAMA_CPP if GGUF in source.lower() else EngineName.TRANSFORMERS
    installed = installed_program(ENGINES[likely]) and not nvidia_accelerators().accelerators
    runtime = RuntimeName.PROCESS if installed else RuntimeName.AUTO
    return {"name": wanted.value, "runtime": runtime.value}


@contextmanager
def _deployed(spec: ModelSpec, *, as_json: bool) -> Iterator[Release]:
    """Deploy the model, and retire it however the block ends, even by an error or a signal."""
    folder = Settings().root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    stopped = heard_by(signal.default_int_handler, (signal.SIGHUP, signal.SIGTERM))
    with FileLock(folder / spec.name), stopped:
        try:
            yield call_flow("deploy_model", spec, Fleet(), as_json=as_json).result
        finally:
            _retire(spec.name)
            (folder / spec.name).unlink(missing_ok=True)


def _retire(name: str) -> None:
    """Retire a model; no failure if its deploy failed and left nothing."""
    try:
        call_flow("retire_model", name, as_json=True)
    except Failure as failure:
        if failure.cause is not Cause.UNKNOWN_RELEASE:
            raise


def _end_abandoned(*, as_json: bool) -> None:
    """Retire the models of killed runs, whose locks are free."""
    for path in sorted((Settings().root / FOLDER).glob("run-*")):
        with suppress(Timeout), FileLock(path, timeout=0):
            if not as_json:
                say(f"{path.name} was left by a run that was killed; it is retired")
            _retire(path.name)
            path.unlink(missing_ok=True)


def _serve(release: Release, *, as_json: bool) -> None:
    base = release.workloads[0].url
    if as_json:
        line = json.dumps({"release": release.id, "model": release.spec.name, "url": base})
        print(line, flush=True)
    else:
        say(f"{release.spec.name} answers at {base} until Ctrl-C")
        sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
