"""`moorage init`: write the file of a new spec."""

from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.safe_files import expanded
from moorage.adapters.files.schemas import write_schemas
from moorage.adapters.files.specs import OTHER_FILES, validated_spec
from moorage.adapters.files.written_specs import write_new
from moorage.cli.options import DEPLOYMENTS, AsJson
from moorage.cli.output import print_answer
from moorage.common.failures import Cause, Failure
from moorage.reports.spec_template import new_spec
from moorage.spec.one_shot import source_of


def init(
    name: Annotated[str, typer.Argument(help="Name under which the model will be served.")],
    source: Annotated[
        str,
        typer.Argument(
            help="A hub name such as org/repo or org/repo:Q4_K_M, a folder, a file, or s3://..."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Write deployments/NAME.yaml with the source, and the other common fields as comments.

    The schemas by which editors check such files are written next to it.
    """
    found = expanded(source.removeprefix("file://"))
    if not found.exists() and _is_a_path(source):
        raise Failure(
            Cause.BAD_SPEC,
            f"there is no file or folder {source} here",
            suggestion=f"Check the path; the hub's repository of this name is `hf://{source}`.",
        )
    content = {"name": name, **source_of(f"file://{found.resolve()}" if found.exists() else source)}
    path = DEPLOYMENTS / f"{name}.yaml"
    if path.name.lower() in OTHER_FILES:
        raise Failure(
            Cause.BAD_SPEC,
            f"{path} is not the file of a spec",
            suggestion="Choose another name for the model.",
        )
    validated_spec(content, path)
    write_schemas(DEPLOYMENTS)
    write_new(path, new_spec(content))
    message = f"""wrote {path} for {content["source"]}
`moorage plan {name}` shows what a deploy would run"""
    print_answer({"file": str(path), "spec": content}, message, as_json=as_json)


def _is_a_path(source: str) -> bool:
    """Whether a source means a file or folder, though `folder/name` is also a hub's repository."""
    if "://" in source:
        return False
    first, slash, _ = source.partition("/")
    return (
        source.startswith((".", "/", "~"))
        or source.endswith((".gguf", ".safetensors"))
        or bool(slash and Path(first).is_dir())
    )
