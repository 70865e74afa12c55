"""Both builds of the package, compiled and plain, in one process.

A test that must pass on both uses the fixture `build`, and imports the package through it::

    def test_length_is_checked(build):
        framing = build.module("weirpool.wire.framing")
        errors = build.module("weirpool.errors")
        with pytest.raises(errors.FrameError):
            framing.decode(b"")

It runs once as ``[compiled]`` and once as ``[plain]``. The builds share no class: an error or a payload of one
is unknown to the other, so such a test file must not import the package at its top.
While the test runs, `import weirpool...` in it, or inside a function under test, also imports this build.

A test that compares both uses `builds`, which has all available builds by name::

    @given(st.binary())
    def test_builds_agree(builds, data):
        results = [attempt(build.module("weirpool.wire.columns").decode, data) for build in builds.values()]
        assert all(result == results[0] for result in results)

Without compiled modules there is only the plain build, unless WEIRPOOL_REQUIRE_EXTENSIONS=1 makes that an
error. With WEIRPOOL_PURE=1 there is only the plain build, too.
"""

from __future__ import annotations

import _imp
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import _bootstrap, import_module
from types import ModuleType
from typing import Any

from weirpool import _build

__all__ = ["Build", "available", "imported", "load", "modules", "restore_modules"]


class Build:
    """One build of the package.

    Args:
        name: "compiled" or "plain".
        own_copy: Keep a second copy of the package, imported from its sources. Otherwise the build is
            the one that the interpreter imports.

    """

    def __init__(self, name: str, own_copy: bool) -> None:
        self.name = name
        self._own_copy = own_copy
        self._modules: dict[str, ModuleType] = {}
        # Imports while the build is active find its modules.
        self._is_active = False

    def __repr__(self) -> str:
        return f"<{self.name} build>"

    def module(self, name: str) -> ModuleType:
        """Return this build's module, such as "weirpool.wire.framing"."""
        if name in self._modules and not self._is_active:
            return self._modules[name]
        with self.active():
            return import_module(name)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make `import weirpool...` use this build within the block."""
        if not self._own_copy or self._is_active:
            yield
            return
        self._is_active = True
        with _no_imports():
            others = _exchange(self._modules)
            sys.meta_path.insert(0, _build.SourceFinder)
        try:
            yield
        finally:
            with _no_imports():
                sys.meta_path.remove(_build.SourceFinder)
                self._modules = _exchange(others)
            self._is_active = False


_copies: list[Build] = []


def modules() -> dict[str, ModuleType]:
    """Return the modules of the package that have been imported, by name."""
    # A thread may import something meanwhile.
    found = list(sys.modules.items())
    return {name: module for name, module in found if name == "weirpool" or name.startswith("weirpool.")}


def restore_modules(noted: dict[str, ModuleType]) -> list[str]:
    """Make imports find the modules that `modules()` returned, and return the names of those that they did not find."""
    replaced = [name for name, module in noted.items() if sys.modules.get(name) is not module]
    sys.modules.update(noted)
    return replaced


def _exchange(new: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Make imports find these modules of the package and no others, and return those that they found before.

    A thread that looks for a module meanwhile finds that of one build or of the other: never none, because it would
    make a third one then, and leave it there.
    """
    old = modules()
    sys.modules.update(new)
    for name in old.keys() - new.keys():
        sys.modules.pop(name, None)
    return old


@contextmanager
def _no_imports() -> Iterator[None]:
    """Let no other thread import the package, whose module would have parts of both builds."""
    _imp.acquire_lock()
    while _is_imported_elsewhere():
        _imp.release_lock()
        time.sleep(0.001)
        _imp.acquire_lock()
    try:
        yield
    finally:
        _imp.release_lock()


def _is_imported_elsewhere() -> bool:
    locks: dict[str, Any] = _bootstrap._module_locks  # type: ignore[attr-defined]
    found = [each() for name, each in list(locks.items()) if name.partition(".")[0] == "weirpool"]
    return any(lock is not None and lock.owner not in (None, threading.get_ident()) for lock in found)


def imported(name: str) -> list[ModuleType]:
    """Return the module of each build that has imported it, such as "weirpool.wire.framing"."""
    copies = (sys.modules, *(build._modules for build in _copies))
    return [modules[name] for modules in copies if name in modules]


def available() -> list[str]:
    """Return the names of the builds that tests run on."""
    compiled = _build.compiled_modules() or os.environ.get("WEIRPOOL_REQUIRE_EXTENSIONS") == "1"
    return ["compiled", "plain"] if compiled and not _build.PURE else ["plain"]


def load(name: str) -> Build:
    """Return the build of that name.

    Raises:
        RuntimeError: The compiled build is requested, but does not exist.

    """
    if name == "compiled" and not _build.compiled_modules():
        raise RuntimeError("WEIRPOOL_REQUIRE_EXTENSIONS=1, but no module is compiled; run: make clean install")
    build = Build(name, own_copy=name == "plain" and bool(_build.compiled_modules()))
    _copies.append(build)
    return build
