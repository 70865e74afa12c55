"""Runs the Python of a page as one program: block after block, with `await` outside functions.

``python -m tests.docs.running`` takes the pieces as JSON from standard input: a file name, a first line and the code.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
import types
from typing import Any

__all__ = ["Piece", "run_pieces"]

Piece = tuple[str, int, str]
"""A file name and the line in it, for tracebacks, and the code."""


def run_pieces(pieces: list[Piece], names: dict[str, Any]) -> None:
    """Run pieces of code in one module, with `names`, to which it adds those that they define.

    Those with `await` outside functions share an event loop.
    """
    module = types.ModuleType("page")
    sys.modules["page"] = module
    vars(module).update(names)
    with asyncio.Runner() as runner:
        for name, line, text in pieces:
            code = compile("\n" * (line - 1) + text, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(code, vars(module)))
            else:
                exec(code, vars(module))
    names.update(vars(module))


if __name__ == "__main__":
    run_pieces([tuple(piece) for piece in json.load(sys.stdin)], {})
