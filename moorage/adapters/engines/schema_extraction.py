"""Extraction of schemas: an engine on this machine, or in an image, is asked for its arguments."""

import subprocess
from pathlib import Path

from pydantic import ValidationError

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Cause, Failure
from moorage.engines.base import Engine
from moorage.engines.schema.argument import Schema

EXTRACT_SCRIPT = Path(__file__).with_name("extract_vllm_schema.py")
EXTRACT_SECONDS = 300
"""Importing vLLM takes about 10 s, and minutes from a cold disk."""


def schema_of_image(image: str) -> tuple[Schema, tuple[str, ...]]:
    """The schema of the engine in an image of this host, from a container without a network.

    Returns:
        The schema, and the names of the image: its digests and its local id.

    Raises:
        Failure: `IMAGE_MISSING`, `RUNTIME_UNAVAILABLE`, or `LAUNCH_REFUSED` with its output.
    """
    known = DockerImages("local").find(image)
    if known is None:
        raise Failure(
            Cause.IMAGE_MISSING,
            f"{image} is not on this machine",
            suggestion=f"Pull it first: `docker pull {image}`.",
        )
    output = DockerRuntime("local").output_of(image, "python3", ["-c", EXTRACT_SCRIPT.read_text()])
    return _parse(output, image), (*known.digests, known.identity)


def schema_of_installed(engine: Engine) -> Schema:
    """The schema of the engine on this machine, run with the engine's own Python.

    Raises:
        Failure: `PROGRAM_MISSING`, or `LAUNCH_REFUSED` with what it says.
    """
    program = installed_program(engine)
    if program is None:
        raise Failure(Cause.PROGRAM_MISSING, f"{engine.program} is not installed on this machine")
    python = _python_of(Path(program.path))
    try:
        done = subprocess.run(
            [python, EXTRACT_SCRIPT],
            capture_output=True,
            text=True,
            timeout=EXTRACT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"{program.path} gave no answer within {EXTRACT_SECONDS} s"
        raise Failure(Cause.LAUNCH_REFUSED, detail) from error
    except OSError as error:
        raise Failure(
            Cause.LAUNCH_REFUSED, f"{program.path}: {python}: {error.strerror}"
        ) from error
    if done.returncode != 0:
        raise Failure(Cause.LAUNCH_REFUSED, f"{program.path}: {done.stderr.strip()[-500:]}")
    return _parse(done.stdout, program.path)


def _python_of(program: Path) -> str:
    """The interpreter in the first line of a program, else the one in its folder."""
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
