from __future__ import annotations

import pytest

from moorage.gateway.scripts import AUTHENTICATE, CHOOSE_MODEL, literal, scripts
from tests.gateway.tables import backend, key, model, table


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (90, "90"),
        ("a1", '"a1"'),
        ('x"]=os.exit()--\n', r'"x\034\093\061os\046exit\040\041\045\045\010"'),
        ("é", r'"\195\169"'),
        ({"a": {"b": False}}, '{["a"]={["b"]=false}}'),
    ],
)
def test_a_value_is_written_so_that_it_can_never_be_code(value: object, written: str) -> None:
    assert literal(value) == written


def test_a_script_begins_with_what_it_looks_up() -> None:
    found = scripts(
        table(model("llama", backend("llama-1", 1), adapters=("sql",)), keys=(key("ann", "sk-a"),))
    )
    assert found[CHOOSE_MODEL].startswith('local MODELS = {["llama"]="llama",["sql"]="llama"}\n')
    requires, keys = found[AUTHENTICATE].splitlines()[:2]
    assert requires == "local REQUIRES_KEY = false"
    assert keys == f'local KEYS = {{["{key("ann", "sk-a").digest}"]={{["name"]="ann"}}}}'
