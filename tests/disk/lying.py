"""A simulated disk: writes are visible at once, but only synced data is certain to survive a power cut.

`LyingDisk` stands under everything below one folder. Programs see an ordinary file system. Beside it the disk keeps
what a power cut would leave: of each file, the bytes as of its last fsync; of each folder, the names as of its last
fsync. Everything since then may have reached the platter or not, in any order, and a write may be torn. So POSIX has
it: a rename is durable when its folder is synced, not before.

Faults come at a step, which is one call that changes something: the power is cut, or the call fails with an error of
the disk's. A disk that *lies about fsync* says that it has synced and has not.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["LyingDisk", "PowerCut"]


class PowerCut(BaseException):
    """The power was cut, or the process was killed: the program stops, and all calls to the disk fail."""


@dataclass
class Inode:
    """A file: its synced content, and the writes since then."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes as offset and data; a truncation as the size and None."""

    def survive(self, rng: random.Random) -> bytes:
        """Return the content after a power cut: some of the pending writes, possibly torn."""
        how = rng.choice(("none", "all", "first", "some", "torn"))
        pending = [] if how == "none" else list(self.pending)
        if how == "first":
            pending = pending[: rng.randint(0, len(pending))]
        elif how == "some":
            pending = [write for write in pending if rng.random() < 0.5]
        content = bytearray(self.synced)
        for place, (offset, data) in enumerate(pending):
            if data is None:
                _resize(content, offset)
                continue
            if how == "torn" and place == len(pending) - 1:
                data = data[: rng.randint(0, len(data))]
            _put(content, offset, data)
        return bytes(content)

    def sync(self) -> None:
        """Sync all pending writes."""
        for offset, data in self.pending:
            if data is None:
                _resize(self.synced, offset)
            else:
                _put(self.synced, offset, data)
        self.pending.clear()


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content += bytes(size - len(content))


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        _resize(content, offset)
    content[offset : offset + len(data)] = data


Names = dict[Path, Inode | None]
"""Files by path; None for a folder."""


class LyingDisk:
    """A disk under one folder.

    Args:
        root: The folder; what it has already is durable.
        cut_at: The step at which the power is cut, before the step has any effect; 0: never.
        fail_at: The step that fails, and with which `errno`; (0, 0): none.
        lies_from: From this step on, fsync says that it has synced and has not; 0: it always does.
        before_step: Called with the number of each step before it has any effect.

    Attributes:
        steps: How many there were.
        syncs: Those that have synced something.

    """

    def __init__(
        self,
        root: Path,
        *,
        cut_at: int = 0,
        fail_at: tuple[int, int] = (0, 0),
        lies_from: int = 0,
        before_step: Callable[[int], None] = lambda step: None,
    ) -> None:
        self.root = root
        self.steps = 0
        self.syncs: list[int] = []
        self._before_step = before_step
        self._cut_at = cut_at
        self._fail_at = fail_at
        self._lies_from = lies_from
        self._names: Names = {
            path: None if path.is_dir() else Inode(bytearray(path.read_bytes())) for path in root.rglob("*")
        }
        self._synced_names = dict(self._names)
        self._renames: list[tuple[Path, Names]] = []
        self._open: dict[int, Path | Inode] = {}
        self._is_cut = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the disk calls for the folder within this block."""
        ours = {
            "open": self._open_file,
            "close": self._close,
            "pwrite": self._pwrite,
            "write": self._write,
            "ftruncate": self._ftruncate,
            "fsync": self._fsync,
            "fdatasync": self._fsync,
            "mkdir": self._mkdir,
            "rename": self._rename,
            "replace": self._rename,
            "unlink": self._unlink,
            "link": self._link,
            "rmdir": self._unlink,
        }
        try:
            with mock.patch.multiple(os, **{name: _wrapped(call, getattr(os, name)) for name, call in ours.items()}):
                yield
        finally:
            if self._is_cut:
                self._close_all()

    def _close_all(self) -> None:
        """Close what the program that was stopped had open."""
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def go_on(self, before_step: Callable[[int], None] = lambda step: None) -> None:
        """Let another process use the disk after one was killed: it sees what may not survive a power cut."""
        self._before_step = before_step
        self._is_cut = False
        self._cut_at, self._fail_at = 0, (0, 0)

    def power_cut(self, target: Path, rng: random.Random | None) -> None:
        """Write the content after a power cut into the folder `target`.

        `rng` chooses what survives without having been synced. Without it, and often with it, nothing does.
        """
        if rng is not None and rng.random() < 0.5:
            rng = None
        names = dict(self._synced_names)
        for _, changed in self._renames:
            if rng is not None and rng.random() < 0.5:
                _apply(names, changed)
        for path, inode in sorted(names.items()):
            place = target / path.relative_to(self.root)
            if not place.parent.is_dir():
                # Its folder did not survive.
                continue
            if inode is None:
                place.mkdir(mode=0o700)
            else:
                place.write_bytes(inode.synced if rng is None else inode.survive(rng))

    # Calls of programs.

    def _step(self) -> None:
        """Count one change, and cut the power or fail if it is the chosen one."""
        if self._is_cut:
            raise PowerCut
        self.steps += 1
        self._before_step(self.steps)
        if self.steps == self._cut_at:
            self._is_cut = True
            raise PowerCut
        step, number = self._fail_at
        if self.steps == step:
            raise OSError(number, os.strerror(number))

    def _mine(self, path: Any) -> Path | None:
        """Return `path` relative to the folder."""
        if isinstance(path, int):
            return None
        found = Path(os.path.abspath(os.fspath(path)))
        return found if found.is_relative_to(self.root) else None

    def _open_file(self, real: Callable[..., int], path: Any, flags: int, *rest: Any, **options: Any) -> int:
        mine = self._mine(path)
        if mine is None:
            return real(path, flags, *rest, **options)
        is_new = flags & os.O_CREAT and not mine.exists()
        if is_new or flags & os.O_TRUNC:
            self._step()
        descriptor = real(path, flags, *rest, **options)
        if mine.is_dir():
            self._open[descriptor] = mine
            return descriptor
        if is_new:
            self._change(mine.parent, {mine: Inode()})
        inode = self._names[mine]
        assert inode is not None
        if flags & os.O_TRUNC:
            inode.pending.append((0, None))
        self._open[descriptor] = inode
        return descriptor

    def _close(self, real: Callable[..., None], descriptor: int) -> None:
        self._open.pop(descriptor, None)
        real(descriptor)

    def _pwrite(self, real: Callable[..., int], descriptor: int, data: Any, offset: int) -> int:
        inode = self._open.get(descriptor)
        if isinstance(inode, Inode):
            self._step()
            inode.pending.append((offset, bytes(data)))
        return real(descriptor, data, offset)

    def _write(self, real: Callable[..., int], descriptor: int, data: Any) -> int:
        inode = self._open.get(descriptor)
        if isinstance(inode, Inode):
            self._step()
            inode.pending.append((os.lseek(descriptor, 0, os.SEEK_CUR), bytes(data)))
        return real(descriptor, data)

    def _ftruncate(self, real: Callable[..., None], descriptor: int, size: int) -> None:
        inode = self._open.get(descriptor)
        if isinstance(inode, Inode):
            self._step()
            inode.pending.append((size, None))
        real(descriptor, size)

    def _fsync(self, real: Callable[..., None], descriptor: int) -> None:
        opened = self._open.get(descriptor)
        if opened is None:
            real(descriptor)
            return
        self._step()
        self.syncs.append(self.steps)
        if 0 < self._lies_from <= self.steps:
            return
        if isinstance(opened, Inode):
            opened.sync()
            return
        for folder, changed in self._renames:
            if folder == opened:
                _apply(self._synced_names, changed)
        self._renames = [(folder, changed) for folder, changed in self._renames if folder != opened]

    def _mkdir(self, real: Callable[..., None], path: Any, *rest: Any, **options: Any) -> None:
        mine = self._mine(path)
        if mine is not None:
            self._step()
        real(path, *rest, **options)
        if mine is not None:
            self._change(mine.parent, {mine: None})

    def _rename(self, real: Callable[..., None], source: Any, target: Any, **options: Any) -> None:
        old, new = self._mine(source), self._mine(target)
        if old is None or new is None:
            real(source, target, **options)
            return
        self._step()
        real(source, target, **options)
        self._change(new.parent, {old: GONE, new: self._names[old]})

    def _link(self, real: Callable[..., None], source: Any, target: Any, **options: Any) -> None:
        old, new = self._mine(source), self._mine(target)
        if old is None or new is None:
            real(source, target, **options)
            return
        self._step()
        real(source, target, **options)
        self._change(new.parent, {new: self._names[old]})

    def _unlink(self, real: Callable[..., None], path: Any, **options: Any) -> None:
        mine = self._mine(path)
        if mine is not None:
            self._step()
        real(path, **options)
        if mine is not None:
            self._change(mine.parent, {mine: GONE})

    def _change(self, folder: Path, changed: Names) -> None:
        """Record an atomic change of the names `changed` in a folder."""
        _apply(self._names, changed)
        self._renames.append((folder, changed))


GONE: Any = object()
"""In a change of names: the name was removed."""


def _apply(names: Names, changed: Names) -> None:
    for path, inode in changed.items():
        if inode is GONE:
            names.pop(path, None)
        else:
            names[path] = inode


def _wrapped(ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement for `real` that calls `ours` with `real` as the first argument."""

    def call(*arguments: Any, **options: Any) -> Any:
        return ours(real, *arguments, **options)

    return call
