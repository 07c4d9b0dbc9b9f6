"""llama-server's own parser, from the xllamacpp wheel, which has the parser but no program.

    python -m moorage.adapters.engines.llama_cpp_parser FOLDER WORD...

FOLDER contains the unpacked wheel. With the word `--help`, it prints llama-server's help text.
It is for help texts, schemas and tests, not for serving: the parser is not a public function of
the wheel, and is called with a pointer into a Python object.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

PARSER = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
"""Mangled name of `common_params_parse(argc, argv, params, example, print_usage)`."""

HEAD = 16
"""Bytes of a Python object before its own fields."""

EXAMPLES = (12, 10, 9)
"""Numbers of the server in builds' `enum llama_example` (llama.cpp's programs), newest first."""

SERVERS_OWN = ("--slot-save-path", "/tmp")
"""An option that only the server has among llama.cpp's programs."""


class LlamaServerParser:
    """The parser of the first wheel that the process imports."""

    def __init__(self) -> None:
        package = import_module("xllamacpp")
        (library,) = Path(str(package.__file__)).parent.glob("*.so")
        self._parse = ctypes.CDLL(str(library))[PARSER]
        self._parse.restype = ctypes.c_bool
        self._parse.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, ctypes.c_void_p]
        self._params: Any = package.CommonParams
        self._example = next(one for one in EXAMPLES if self.accepts(SERVERS_OWN, one))

    def accepts(self, words: Sequence[str], example: int | None = None) -> bool:
        """Whether llama-server would accept words; parses in a fork, which a refusal may exit."""
        child = os.fork()
        if child == 0:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os._exit(0 if self.parse(words, example) else 1)
        return os.waitpid(child, 0)[1] == 0

    def help(self) -> str:
        """llama-server's output for `--help`."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(writing, 1)
            self.parse(["--help"])
            os._exit(1)
        os.close(writing)
        with open(reading) as output:
            text = output.read()
        os.waitpid(child, 0)
        return text

    def parse(self, words: Sequence[str], example: int | None = None) -> bool:
        """Parse words; exits the process where llama-server would, such as after `--help`."""
        line = [b"llama-server", *map(os.fsencode, words)]
        pointers = (ctypes.c_char_p * (len(line) + 1))(*line, None)
        params = self._params()
        server = self._example if example is None else example
        return bool(self._parse(len(line), pointers, id(params) + HEAD, server, None))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    LlamaServerParser().parse(sys.argv[2:])
