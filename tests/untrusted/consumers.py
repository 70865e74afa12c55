"""Everything that is made from a description, by name, and what it takes. Run it with the name of a consumer."""

from __future__ import annotations

import io
import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tests.untrusted.bombs import bombs
from weirpool import WeirpoolError
from weirpool.cli import describe as describing
from weirpool.cli.schemas import KIND_OF, procedures
from weirpool.mocking.service import MockOptions, mock_service
from weirpool.reflection.description import Description, read
from weirpool.reflection.examples import example
from weirpool.reflection.exported import exported
from weirpool.reflection.notation import field_lines, fields_text, signature
from weirpool.schema.codegen import generate_python
from weirpool.schema.typescript import generate_typescript

__all__ = ["CONSUMERS", "MIB", "SECONDS"]

SECONDS = 2.0
"""Twice the time that each may take: it is that of a processor which others use as well."""
MIB = 100


def _examples(description: Description) -> None:
    for each in description.routes:
        for schema in (each.request, each.items, each.response):
            json.dumps(example(schema, description.definitions))


def _notation(description: Description) -> None:
    for each in description.routes:
        signature(each, description.definitions)
        fields_text(each.request, description.definitions)
    for schema in description.definitions.values():
        field_lines(schema)


def _described(description: Description) -> None:
    with redirect_stdout(io.StringIO()):
        describing._print_table(description)
        for each in description.routes[:1]:
            command = describing._example("rsocket+tcp://a:1", each, description.definitions, [])
            describing._print_route(each, description, command)


def _as_json(description: Description) -> None:
    with redirect_stdout(io.StringIO()):
        describing._print_json(description, None)


def _mocked(description: Description) -> None:
    found = procedures(exported(description), "bomb")
    service = mock_service({route: (KIND_OF[each["type"]], each) for route, each in found.items()}, MockOptions())
    assert service.routes()


CONSUMERS: dict[str, Callable[[Description], Any]] = {
    "read": lambda description: None,
    "example": _examples,
    "notation": _notation,
    "describe": _described,
    "describe --json": _as_json,
    "Python": lambda description: generate_python(exported(description)),
    "rsocket": lambda description: generate_typescript(exported(description), "rsocket"),
    "river": lambda description: generate_typescript(exported(description), "river"),
    "river-1.1": lambda description: generate_typescript(exported(description), "river-1.1"),
    "mock": _mocked,
}


def measured(consume: Callable[[Description], Any], data: bytes) -> tuple[str, float, float]:
    """Return what happened in a process of its own, its CPU seconds, and by how many MiB it grew."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() // 1024
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            consume(read(data))
            said = "used"
        except WeirpoolError as error:
            said = f"refused: {error}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(into, said[:200].encode(errors="replace"))
        os._exit(0)
    os.close(into)
    said = os.read(out, 1_000).decode()
    os.close(out)
    _, _, usage = os.wait4(child, 0)
    return said, usage.ru_utime + usage.ru_stime, (usage.ru_maxrss - before) / 1024


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    chosen = sys.argv[2:]
    for name, data in bombs():
        if not chosen or any(word in name for word in chosen):
            said, seconds, mib = measured(CONSUMERS[sys.argv[1]], data)
            print(
                json.dumps({"bomb": name, "said": said, "seconds": round(seconds, 2), "mib": round(mib, 1)}), flush=True
            )
