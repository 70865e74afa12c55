"""The allowed imports, of the table in layers.py; each violation is reported with its line."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.layers import FAMILIES, FOLDERS, RULES, Rule

SRC = Path(__file__).parent.parent / "src"
# Below `transports`, time and randomness are arguments, and the system is not used.
SANS_IO = {"top", "protocols", "wire", "core", *FAMILIES}
SYSTEM = {
    "_thread", "asyncio", "concurrent", "datetime", "io", "logging", "multiprocessing", "os", "queue", "random",
    "secrets", "select", "selectors", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
ALWAYS_THERE = {"msgspec", "cython", "cpython", "libc"}
"""The only core dependency, and the modules of Cython's cimports."""
SYSTEM_ALLOWED = {"weirpool._build": {"os"}}
"""_build reads WEIRPOOL_PURE from the environment."""


@dataclass(frozen=True)
class Import:
    """One import: its module, its line, and whether it is inside a function or for type checkers only."""

    module: str
    line: int
    lazy: bool


def layer_of(module: str) -> str:
    """Return the layer of a module of this package."""
    top, _, rest = module.partition(".")
    if top != "weirpool":
        return top
    first = rest.partition(".")[0]
    if not first:
        return "public"
    return first if first in FOLDERS or first == "protocols" else "top"


def rule_of(module: str) -> Rule:
    """Return the row of the table for a module."""
    inner = module.removeprefix("weirpool.")
    fitting = [name for name in RULES if (inner + ".").startswith((name + ".", name + "_"))]
    return RULES[max(fitting, key=len, default=layer_of(module))]


def imports_of(source: str, module: str, is_package: bool = False) -> Iterator[Import]:
    """Yield the imports of a module's source, with absolute names."""
    package = module if is_package else module.rpartition(".")[0]

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: package.count(".") + 2 - node.level]) if node.level else ""
            target = ".".join(filter(None, [base, node.module]))
            yield from (Import(imported(target, alias.name), node.lineno, lazy) for alias in node.names)
        is_lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        only_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, is_lazy or only_types)

    yield from visit(ast.parse(source), False)


def cimports_of(source: str, module: str) -> Iterator[Import]:
    """Yield the imports of a Cython file. All of them count as eager."""
    for number, line in enumerate(source.splitlines(), 1):
        match = re.match(r"\s*(from\s+[\w.]+\s+|)c?(import\s.+)", line)
        if match:
            yield from (Import(one.module, number, False) for one in imports_of(match[1] + match[2], module))


def imported(target: str, name: str) -> str:
    """Return the module that `from target import name` imports: `target`, or its submodule `name`."""
    folder = SRC.joinpath(*target.split("."))
    is_module = folder.name in FOLDERS or any(folder.joinpath(name).with_suffix(end).exists() for end in ("", ".py"))
    return f"{target}.{name}" if is_module else target


def violation(module: str, found: Import) -> str | None:
    """Return why `module` may not use an import; None if it may."""
    rule, layer = rule_of(module), layer_of(module)
    package = found.module.partition(".")[0]
    if package == "weirpool":
        target = layer_of(found.module)
        inner = found.module.removeprefix("weirpool.")
        allowed = target == layer or not rule.ours.isdisjoint({target, inner})
        allowed = allowed or (found.lazy and not rule.lazily.isdisjoint({target, inner}))
        return (
            None if allowed else f"layer {layer!r} may not import {found.module}{'' if found.lazy else ' at the top'}"
        )
    if package in sys.stdlib_module_names:
        banned = layer in SANS_IO and package in SYSTEM and package not in SYSTEM_ALLOWED.get(module, set())
        return f"{package} below transports: time, randomness and the system are arguments here" if banned else None
    allowed = package in ALWAYS_THERE or package in rule.theirs or (found.lazy and package in rule.theirs_lazily)
    return None if allowed else f"layer {layer!r} may not import {package}{'' if found.lazy else ' at the top'}"


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def check(source: str, module: str, *, is_package: bool = False, cython: bool = False) -> list[str]:
    """Return every violation in a source, with its line."""
    found = cimports_of(source, module) if cython else imports_of(source, module, is_package)
    return [f"line {one.line}: {reason}" for one in found if (reason := violation(module, one))]


def test_files_import_only_allowed_layers() -> None:
    paths = sorted(path for path in SRC.rglob("*.p*") if path.suffix in {".py", ".pyx", ".pxd"})
    assert paths
    found = {
        path.relative_to(SRC).as_posix(): check(
            path.read_text(), module_name(path), is_package=path.stem == "__init__", cython=path.suffix != ".py"
        )
        for path in paths
    }
    assert {place: violations for place, violations in found.items() if violations} == {}


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in (SRC / "weirpool").iterdir() if (path / "__init__.py").exists()}
    assert folders <= FOLDERS


def test_every_folder_states_its_allowed_imports() -> None:
    for path in (SRC / "weirpool").glob("*/__init__.py"):
        assert "May import" in str(ast.get_docstring(ast.parse(path.read_text()))), path


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("weirpool.wire.framing", "from weirpool.core import timers"),
        ("weirpool.wire.framing", "from ..core.timers import Timers"),
        ("weirpool.wire.framing", "from .. import aio"),
        ("weirpool.wire.framing", "import pyarrow"),
        ("weirpool.core.timers", "import time"),
        ("weirpool.core.timers", "def now():\n    from time import monotonic"),
        ("weirpool.session", "import asyncio.events"),
        ("weirpool.payload", "from .wire import frames"),
        ("weirpool.rsocket.session", "from weirpool.river import session"),
        ("weirpool.rsocket.session", "if TYPE_CHECKING:\n    from ..aio import driver"),
        ("weirpool.protocols", "def load():\n    from .rsocket import session"),
        ("weirpool.transports.tcp", "from ..wire import fields"),
        ("weirpool.aio.streams", "from ..wire import columns"),
        ("weirpool.aio.streams", "def batches():\n    from ..wire import framing"),
        ("weirpool.aio.streams", "import pyarrow"),
        ("weirpool.schema.foreign", "import jsonschema_rs"),
        ("weirpool.schema.export", "from ..aio import service"),
        ("weirpool.aio.peer", "from ..rsocket import session"),
        ("weirpool.aio.server", "from ..store import SessionFolder"),
        ("weirpool.store.log", "from ..journal.disk import sync_folder"),
        ("weirpool.aio.metrics", "import prometheus_client"),
        ("weirpool.observe.prometheus", "import opentelemetry"),
        ("weirpool.observe.opentelemetry", "from ..rsocket import metadata"),
        ("weirpool.journal.writer", "from weirpool.aio import client"),
        ("weirpool.journal.reader", "import pyspark"),
        ("weirpool.spark.source", "from weirpool.aio import client"),
        ("weirpool.reactive.adapters", "from ..rsocket import session"),
        ("weirpool.reactive.reactivex", "import reactivex"),
        ("weirpool.testing.ends", "from ..rsocket import session"),
        ("weirpool.cli.main", "import pyspark.sql"),
        ("weirpool.cli.main", "from .. import journal"),
        ("weirpool.cli.main", "def run():\n    import requests"),
    ],
)
def test_checker_sees_a_violation(module: str, source: str) -> None:
    assert len(check(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("weirpool.wire.columns", "import pyarrow"),
        ("weirpool.wire.columns_plain", "import pyarrow"),
        ("weirpool.wire.framing", "from .fields import u24\nfrom ..errors import FrameError\nimport struct, msgspec"),
        ("weirpool.transports.websocket_frames", "from ..wire.framing import LongMessage"),
        ("weirpool.aio.streams", "def batches():\n    import pyarrow\n    from ..wire import columns"),
        ("weirpool.aio.streams", "def batches():\n    from ..wire.columns import record_batch"),
        ("weirpool.observe.carriers", "from ..protocols import carriers"),
        ("weirpool.observe.prometheus", "import prometheus_client\nfrom ..aio.metrics import Metrics"),
        ("weirpool.journal.collect", "from ..aio.client import connect"),
        ("weirpool.spark.sink", "def write():\n    from weirpool.aio.client import connect"),
        ("weirpool.cli.demo", "import typer\ndef run():\n    import pyspark\n    from .. import connect"),
    ],
)
def test_checker_lets_pass(module: str, source: str) -> None:
    assert check(source, module) == []


def test_checker_reads_cython_files() -> None:
    source = (
        "cimport cython\nfrom libc.string cimport memcpy\nfrom .fields cimport u24\nfrom ..core.timers cimport Timers\n"
    )
    assert check(source, "weirpool.wire.framing", cython=True) == [
        "line 4: layer 'wire' may not import weirpool.core.timers at the top"
    ]


# Code above the families names no protocol, but uses the rows of weirpool/protocols.py.
PROTOCOL = re.compile(
    "|".join(
        [r"(?i:rsocket|reactive.?s(?:ocket|treams))"]
        + [rf"(?<![A-Za-z])(?:{name}|{name.upper()})(?![A-Za-z])|{name.title()}" for name in sorted(FAMILIES)]
    )
)
BELOW = {"wire", "core", "protocols.py", "settings.py", "errors.py", *FAMILIES}
ABOVE = {
    path.relative_to(SRC / "weirpool").as_posix(): path
    for path in sorted((SRC / "weirpool").rglob("*.py"))
    if path.relative_to(SRC / "weirpool").parts[0] not in BELOW
}
NAMING = {
    "__init__.py": "the homes of public names",
    "cli/parser.py": "the verb `weirpool river`",
    "reactive/": "Reactive Streams, the specification of publishers",
    "cli/codegen.py": "the libraries that clients are generated for",
    "cli/river.py": "the verb `weirpool river`",
    "schema/rsocket_js.py": "the library rsocket-js",
    "schema/rsocket_js_runtime.py": "the library rsocket-js",
    "schema/typebox.py": "the library @replit/river",
    "schema/typescript.py": "the libraries that clients are generated for",
    "schema/typescript_types.py": "names of the libraries, which types may not have",
}
"""Exceptions: files and folders that name a protocol, with the reason."""


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the identifiers, modules and strings of a source, with their lines; no docstrings and no help texts."""
    tree = ast.parse(source)
    silent: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(node.value)
        if isinstance(node, ast.keyword) and node.arg == "help":
            silent.update(ast.walk(node.value))
    for node in ast.walk(tree):
        if node not in silent:
            said = [getattr(node, field, None) for field in ("id", "attr", "name", "arg", "asname", "module", "value")]
            yield from ((getattr(node, "lineno", 0), each) for each in said if isinstance(each, str))


def protocols_in(source: str) -> list[str]:
    """Return the names of protocols in a source, with their lines."""
    return [f"line {line}: {name!r}" for line, name in names_in(source) if PROTOCOL.search(name)]


def sniffing_in(source: str) -> list[str]:
    """Return the lines in which a source inspects the type or attributes of a session or detector."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr", "isinstance")
        and re.search(r"(session|detector)$", ast.unparse(node.args[0]))
    ]


def test_files_above_the_families_name_no_protocol() -> None:
    found = {
        place: protocols_in(path.read_text()) for place, path in ABOVE.items() if not place.startswith(tuple(NAMING))
    }
    assert found and {place: names for place, names in found.items() if names} == {}


def test_files_above_the_waist_do_not_inspect_session_types() -> None:
    found = {place: sniffing_in(path.read_text()) for place, path in ABOVE.items()}
    assert found and {place: lines for place, lines in found.items() if lines} == {}


def test_every_exception_is_needed() -> None:
    for place in NAMING:
        assert any(protocols_in(path.read_text()) for name, path in ABOVE.items() if name.startswith(place)), place


@pytest.mark.parametrize(
    "source",
    [
        "if protocol == 'river':\n    pass",
        "from ..rsocket import session",
        "class RiverReader:\n    pass",
        "REACTIVE_STREAMS = 1",
        "connect(f'rsocket+{transport}')",
    ],
)
def test_checker_sees_a_protocol(source: str) -> None:
    assert protocols_in(source)


@pytest.mark.parametrize("source", ["driver = Driver()", "def f():\n    'Over RSocket.'", "Option(help='For River.')"])
def test_checker_accepts_code_without_protocol_names(source: str) -> None:
    assert protocols_in(source) == []


def test_checker_finds_session_type_checks() -> None:
    assert sniffing_in("getattr(driver.session, 'linked_at', None)") and sniffing_in("isinstance(session, Durable)")
    assert not sniffing_in("isinstance(event, Closed)")
