"""Extraction of schemas: queries an engine on this machine or in an image for its arguments."""

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.extract_llama_cpp_schema import schema_of_help
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Cause, Failure
from moorage.engines.llama_cpp.engine import PROGRAM_IN_IMAGE
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.spec import EngineName

EXTRACT_SCRIPT = Path(__file__).with_name("extract_vllm_schema.py")
EXTRACT_SECONDS = 300
"""Time limit: importing vLLM takes about 10 s, or minutes from a cold disk."""

BUILD = re.compile(r"version: b?(\d+)")

Run = Callable[[str, list[str]], str]
"""Runs a program with arguments, and returns its output."""


def schema_of_image(engine: EngineName, image: str) -> tuple[Schema, tuple[str, ...]]:
    """Extract the schema of the engine in an image of this host, in a container without a network.

    Returns:
        The schema, and the names of the image: its digests and its local id.

    Raises:
        Failure: `BAD_SETTING` for an engine that cannot be queried, `IMAGE_MISSING`,
            `RUNTIME_UNAVAILABLE`, or `LAUNCH_REFUSED` with its output.
    """
    question = _question(engine)
    known = DockerImages("local").find(image)
    if known is None:
        raise Failure(
            Cause.IMAGE_MISSING,
            f"{image} is not on this machine",
            suggestion=f"Pull it first: `docker pull {image}`.",
        )
    run = partial(DockerRuntime("local").output_of, image)
    schema = _parse(question.ask(run, question.program), image)
    return schema, (*known.digests, known.identity)


def schema_of_installed(engine: EngineName) -> Schema:
    """Extract the schema of the engine that is installed on this machine.

    Raises:
        Failure: `BAD_SETTING` for an engine that cannot be queried, `PROGRAM_MISSING`, or
            `LAUNCH_REFUSED` with its output.
    """
    question = _question(engine)
    program = installed_program(ENGINES[engine])
    if program is None:
        missing = ENGINES[engine].program
        raise Failure(Cause.PROGRAM_MISSING, f"{missing} is not installed on this machine")
    is_module = question.program == PYTHON
    asked = _python_of(Path(program.path)) if is_module else program.path
    return _parse(question.ask(partial(_output_here, program.path), asked), program.path)


def _vllm(run: Run, python: str) -> str:
    """Schema from vLLM's own parser, by a script in the Python that has vLLM."""
    return run(python, ["-c", EXTRACT_SCRIPT.read_text()])


def _llama_server(run: Run, program: str) -> str:
    """Schema from the output of `llama-server --version` and `--help`."""
    version = run(program, ["--version"])
    build = BUILD.search(version)
    if build is None:
        raise Failure(Cause.LAUNCH_REFUSED, f"{program}: no build: {version[-300:]!r}")
    try:
        return schema_of_help(run(program, ["--help"]), build[1])
    except ValueError as error:
        raise Failure(Cause.LAUNCH_REFUSED, f"{program}: no help text: {error}") from error


class Question(NamedTuple):
    """How to query an engine for its arguments.

    Attributes:
        program: Program in an image that answers.
        ask: Queries a program, and returns the schema as JSON.
    """

    program: str
    ask: Callable[[Run, str], str]


PYTHON = "python3"
QUESTIONS = {
    EngineName.VLLM: Question(PYTHON, _vllm),
    EngineName.LLAMA_CPP: Question(PROGRAM_IN_IMAGE, _llama_server),
}


def _question(engine: EngineName) -> Question:
    if found := QUESTIONS.get(engine):
        return found
    raise Failure(
        Cause.BAD_SETTING,
        f"{engine} cannot be asked for its arguments",
        suggestion=f"Engines that can: {', '.join(QUESTIONS)}.",
    )


def _output_here(path: str, program: str, arguments: list[str]) -> str:
    """Output of a program of this machine; failures name the engine's `path`."""
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=EXTRACT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"{path} gave no answer within {EXTRACT_SECONDS} s"
        raise Failure(Cause.LAUNCH_REFUSED, detail) from error
    except OSError as error:
        raise Failure(Cause.LAUNCH_REFUSED, f"{path}: {program}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(Cause.LAUNCH_REFUSED, f"{path}: {done.stderr.strip()[-500:]}")
    return done.stdout or done.stderr


def _python_of(program: Path) -> str:
    """Interpreter from the first line of a program, otherwise the one in the program's folder."""
    first = program.read_bytes().partition(b"\n")[0].decode(errors="replace")
    named = first.removeprefix("#!").strip()
    if first.startswith("#!/") and "python" in named and " " not in named:
        return named
    return str(program.resolve().with_name("python3"))


def _parse(output: str, where: str) -> Schema:
    try:
        return Schema.model_validate_json(output)
    except ValidationError as error:
        raise Failure(Cause.LAUNCH_REFUSED, f"{where}: no schema: {output[-300:]!r}") from error
