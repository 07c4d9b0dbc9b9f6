"""`moorage init`: write the file of a new spec."""

from typing import Annotated

import typer

from moorage.adapters.files.safe_files import expanded
from moorage.adapters.files.schemas import write_schemas
from moorage.adapters.files.specs import OTHER_FILES, validated, write_new
from moorage.cli.options import DEPLOYMENTS, AsJson
from moorage.cli.output import print_answer
from moorage.common.failures import Cause, Failure
from moorage.reports.spec_template import new_spec
from moorage.spec import ModelSpec
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

    The schemas by which editors check such files are written beside it.
    """
    found = expanded(source.removeprefix("file://"))
    content = {"name": name, **source_of(f"file://{found.resolve()}" if found.exists() else source)}
    path = DEPLOYMENTS / f"{name}.yaml"
    if path.name.lower() in OTHER_FILES:
        raise Failure(
            Cause.BAD_SPEC,
            f"{path} is not the file of a spec",
            suggestion="Choose another name for the model.",
        )
    validated(content, ModelSpec, path, Cause.BAD_SPEC)
    write_schemas(DEPLOYMENTS)
    write_new(path, new_spec(content))
    message = f"""wrote {path} for {content["source"]}
`moorage plan {name}` shows what a deploy would run"""
    print_answer({"file": str(path), "spec": content}, message, as_json=as_json)
