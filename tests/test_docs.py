"""The documentation matches the code: settings, errors, commands and examples."""

from __future__ import annotations

import ast
import re
import shlex
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.__main__ import parsed

from weirpool import errors, settings
from weirpool.cli.parser import command
from weirpool.wire.rsocket.frames import FLAG_NAMES
from weirpool.wire.rsocket.layouts import REACTIVESOCKET_V02, RSOCKET_V1
from weirpool.wire.rsocket.v00_layouts import REACTIVESOCKET_V00

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


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
    assert told == set(errors.__all__) - {"WeirpoolError"}


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
        for line in re.findall(r"(?:^[$#]|\|) weirpool +([^|\n]*)", block, re.MULTILINE):
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
    ("page", "folder", "patterns"),
    [
        (
            "tutorial/lakehouse.md",
            "lakehouse",
            {"java": "publisher/src/**/*.java", "toml": "feeds.toml", "python": "table.py"},
        ),
        ("how-to/spring.md", "spring", {"java": "src/**/*.java", "python": "*.py"}),
    ],
)
def test_page_shows_parts_of_its_files(page: str, folder: str, patterns: dict[str, str]) -> None:
    for language, pattern in patterns.items():
        found_files = (ROOT / "examples" / folder).glob(pattern)
        files = [[line.strip() for line in file.read_text().splitlines()] for file in found_files]
        content = "\n".join("\n".join(filter(None, lines)) for lines in files)
        found = blocks(ROOT / "docs" / page, language)
        shown = ["\n".join(line.strip() for line in block.splitlines() if line.strip()) for block in found]
        assert shown and [block for block in shown if block not in content] == []
