"""The two builds of the tests are exchanged under threads that import something."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tests import builds as both_builds
from tests.builds import Build


class Slow:
    """Finds the module `weirpool.slow`, which takes a while and notes what it imports at its end."""

    def __init__(self) -> None:
        self.begun, self.exchanged = threading.Event(), threading.Event()
        self.found: list[ModuleType] = []

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "weirpool.slow" else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self.begun.set()
        self.exchanged.wait(0.2)
        self.found.append(sys.modules["weirpool"])


@pytest.fixture
def plain(builds: dict[str, Build]) -> Build:
    return builds["plain"]


def test_an_import_of_another_thread_gets_modules_of_one_build(plain: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, slow = sys.modules["weirpool"], Slow()
    monkeypatch.setattr(sys, "meta_path", [slow, *sys.meta_path])
    thread = threading.Thread(target=import_module, args=("weirpool.slow",))
    thread.start()
    slow.begun.wait()
    with plain.active():
        slow.exchanged.set()
        thread.join()
    assert slow.found == [ours]
    monkeypatch.delitem(sys.modules, "weirpool.slow")


def test_replaced_modules_are_found_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = both_builds.modules()
    monkeypatch.setitem(sys.modules, "weirpool.urls", ModuleType("weirpool.urls"))
    assert both_builds.restore_modules(noted) == ["weirpool.urls"]
    assert sys.modules["weirpool.urls"] is noted["weirpool.urls"]
