"""The documentation matches the code: settings, errors, commands and examples."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.__main__ import parsed

from penstock import errors, settings
from penstock.cli.parser import command
from penstock.wire.rsocket.frames import FLAG_NAMES
from penstock.wire.rsocket.layouts import REACTIVESOCKET_V02, RSOCKET_V1
from penstock.wire.rsocket.v00_layouts import REACTIVESOCKET_V00

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN_SECONDS = 60


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def unknown_in(arguments: list[str]) -> list[str]:
    """Return the verbs and options in the arguments of a command line that do not exist."""
    found = command()
    while subcommands := getattr(found, "commands", None):
        if not arguments or arguments[0] not in subcommands:
            return arguments[:1]
        found = subcommands[arguments[0]]
        arguments = arguments[1:]
    known = {"--help", *(name for each in found.params for name in (*each.opts, *each.secondary_opts))}
    # A dash and a digit begin a place: a number of rows before the end.
    given = [each.partition("=")[0] for each in arguments if re.match(r"--?[a-z]", each)]
    return [each for each in given if each not in known]


def is_run(module: str) -> bool:
    """Return True if `python -m` does something with a module."""
    found = find_spec(module)
    if found is None or found.submodule_search_locations:
        return found is not None and find_spec(f"{module}.__main__") is not None
    return '__name__ == "__main__"' in Path(str(found.origin)).read_text()


def shown(value: object) -> str:
    """Return a default as the page shows it."""
    if isinstance(value, bool | tuple):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def test_settings_page_lists_every_setting() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text()
    source = ast.parse(Path(settings.__file__).read_text())
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef))
    told = 0
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign):
            name, reason = ast.unparse(field.target), ast.literal_eval(ast.unparse(after))
            words = " ".join(reason.split()).replace("``", "`")
            assert f"| `{name}` | {shown(getattr(settings.DEFAULT_SETTINGS, name))} | {words} |" in page
            told += 1
    assert told == page.count("| `") > 0


def test_errors_page_lists_every_error() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text()
    told = set(re.findall(r"^\|[^`|]*`(\w+)`", page, re.MULTILINE))
    assert told == set(errors.__all__) - {"PenstockError"}


def test_reference_lists_flags_and_fields_of_frames() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert f"`{' '.join(FLAG_NAMES)}`" in " ".join(page.split())
    tables = (RSOCKET_V1, REACTIVESOCKET_V02, REACTIVESOCKET_V00)
    fields = {field.name for table in tables for layout in table.values() for field in layout.fields}
    assert [name for name in sorted(fields) if f"`{name}`" not in page] == []


def test_every_page_is_in_the_index_and_in_the_navigation() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    index, navigation = (ROOT / "docs/index.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    assert [page for page in pages if page != "index.md" and f"]({page})" not in index] == []
    assert [page for page in pages if f": {page}\n" not in navigation] == []


@pytest.mark.parametrize("page", ["explanation/architecture.md", "how-to/add-a-protocol.md"])
def test_guide_names_files_that_exist(page: str) -> None:
    files = {f"/{path.relative_to(ROOT)}" for folder in ("src", "tests", "docs") for path in (ROOT / folder).rglob("*")}
    names = re.findall(r"[\w./-]+\.(?:py|pxd|md)\b|tests/[\w./]+", (ROOT / "docs" / page).read_text())
    # FAMILY and VERB stand for several; links are relative to the page.
    known = {re.sub(r"^(?:FAMILY|\.\.)/", "", name).rstrip("/") for name in names} - {"CHANGELOG.md", "cli/VERB.py"}
    missing = [name for name in sorted(known) if not any(file.endswith(f"/{name}") for file in files)]
    assert missing == [] and len(known) > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_exist_and_code_is_code(page: Path) -> None:
    for block in blocks(page, "console"):
        for line in re.findall(r"(?:^[$#]|\|) penstock +([^|\n]*)", block, re.MULTILINE):
            assert unknown_in(shlex.split(line, comments=True)) == []
        for target in re.findall(r"^\$ make ?([a-z]*)", block, re.MULTILINE):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text() or not target
    for module, arguments in re.findall(r"python -m ([a-z_.]+)([^`|#]*?)(?=[`|#]|$)", page.read_text(), re.MULTILINE):
        assert is_run(module), module
        if module == "benchmarks":
            parsed(shlex.split(arguments))
    for block in blocks(page, "python"):
        compile(block, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(
    ("page", "count", "output"),
    [
        ("README.md", 2, "Payload(b'hello'"),
        (
            "docs/how-to/metadata.md",
            2,
            'quotes.latest for ada\nBearer() "quotes.latest for bearer" in trace 2a from Paris\nwho are you?\n',
        ),
        (
            "docs/how-to/typed.md",
            2,
            "Quote(symbol='ACME', price=1.5)\n[Quote(symbol='ACME', price=1.0), Quote(symbol='ACME', price=1.25)]\n"
            "30.0\nSymbol(name='?') is unknown\n[('/name', 'Object missing required field `name`')]\n",
        ),
        (
            "docs/how-to/reflection.md",
            2,
            "quotes 1.4\ncall quotes.latest - Return the price of the last trade.\nunknown\n",
        ),
        ("docs/how-to/serve-and-call.md", 2, "b'42'\nb'6'\n[b'0', b'1', b'2']\nhello\n0x301 not today\n"),
        ("docs/how-to/leases.md", 1, "12\nthe peer has not granted a lease for another request"),
        ("docs/how-to/old-peers.md", 1, "[b'1', b'half time', b'2']\n"),
        (
            "docs/how-to/observe.md",
            8,
            "connected: bob\n[b'0!', b'1!', b'2!']\nbob may not call admin.stop\nclosed: bob\n3 items, 1 call\n",
        ),
        (
            "docs/how-to/reactive.md",
            1,
            "[b'0', b'1']\n[b'4', b'9']\ncomplete\nb'0'\nb'1'\nb'4'\n",
        ),
        (
            "docs/how-to/reconnect.md",
            3,
            "b'before'\nthe open call failed\nb'after'\nb'balanced'\nrsocket+memory://two up 0\nrsocket",
        ),
        (
            "docs/how-to/resume.md",
            2,
            "b'before'\nb'sent'\nthe server was restarted; part of this may have been done\nb'after'\n",
        ),
    ],
)
def test_examples_run(page: str, count: int, output: str) -> None:
    program = "\n".join(blocks(ROOT / page, "python")[:count])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert output in result.stdout


def test_the_tutorial_shows_parts_of_its_files() -> None:
    example = ROOT / "examples" / "lakehouse"
    for language, pattern in {"java": "publisher/src/**/*.java", "toml": "feeds.toml", "python": "table.py"}.items():
        files = [[line.strip() for line in file.read_text().splitlines()] for file in example.glob(pattern)]
        content = "\n".join("\n".join(filter(None, lines)) for lines in files)
        found = blocks(ROOT / "docs" / "tutorial" / "lakehouse.md", language)
        shown = ["\n".join(line.strip() for line in block.splitlines() if line.strip()) for block in found]
        assert shown and [block for block in shown if block not in content] == []
