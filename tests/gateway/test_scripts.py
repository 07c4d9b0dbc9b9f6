from __future__ import annotations

import pytest

from moorage.gateway.scripts import PATHS, SCRIPTS, literal, scripts
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
    llama = model("llama", backend("llama-1", 1), adapters=("sql",))
    code = dict.fromkeys(SCRIPTS, "the code")
    found = scripts(table(llama, keys=(key("ann", "sk-a"),)), code)
    digest = key("ann", "sk-a").digest
    assert found == {
        "authenticate": "local REQUIRES_KEY = false\n"
        f'local KEYS = {{["{digest}"]={{["name"]="ann"}}}}\nthe code',
        "choose_model": 'local MODELS = {["llama"]="llama",["sql"]="llama"}\n'
        f"local PATHS = {literal(dict.fromkeys(PATHS, True))}\nthe code",
        "count_tokens": "the code",
    }
