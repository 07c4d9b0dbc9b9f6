"""Finding out which arguments an engine takes."""

from __future__ import annotations

from moorage.adapters.engines.schemas import SchemaStore, schema_of_image, schema_of_installed
from moorage.adapters.system.settings import Settings
from moorage.cli.output import dump, err, out, print_table
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.spec import EngineName


def show(image: str | None, *, installed: bool, as_json: bool) -> None:
    """Extract and keep a schema, or list those that are shipped.

    Raises:
        Failure: When the engine cannot be asked.
    """
    store = SchemaStore(Settings().root)
    if image and installed:
        raise Failure(Cause.BAD_SETTING, "--image and --installed: only one can be asked at once")
    if not image and not installed:
        _list(store, as_json=as_json)
        return
    with err.status(f"asking the vLLM {f'in {image}' if image else 'installed here'} (~15 s)"):
        schema, names = _extracted(image)
        paths = store.keep(schema, names)
    if as_json:
        dump(schema.model_dump(mode="json", exclude_defaults=True))
        return
    out.print(f"vLLM {schema.version} takes {len(schema.arguments)} arguments; kept in")
    for path in paths:
        out.print(f"  {path}", soft_wrap=True)


def _extracted(image: str | None) -> tuple[Schema, tuple[str, ...]]:
    if image:
        return schema_of_image(image)
    schema = schema_of_installed(ENGINES[EngineName.VLLM])
    return schema, (schema.version,)


def _list(store: SchemaStore, *, as_json: bool) -> None:
    known = store.every()
    if as_json:
        dump([{"version": item.version, "also": item.also} for item in known])
        return
    rows = [
        (", ".join((item.version, *item.also)), str(len(item.arguments)), str(len(item.options)))
        for item in known
    ]
    print_table(("vLLM", "arguments", "options"), rows)
