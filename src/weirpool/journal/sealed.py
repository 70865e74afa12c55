"""What a log's folder tells about its cold storage: how far it is sealed, and where that is.

With the file ``_sealed`` in it, segments of a log are removed when they are sealed, and not when readers commit. The
file is a copy of what the manifest says. The store of a journal is named in ``_store.json``; without it, sealed
segments are in the journal's folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import msgspec
import xxhash

from ..errors import JournalCorrupt, JournalMismatch
from .disk import disk_errors, make_folder, read_file, replace_file
from .gaps import locked
from .layout import SEALED, STORE, Extent

__all__ = [
    "SealedState",
    "check_store",
    "load_sealed",
    "raise_floor",
    "record_sealed",
    "record_store",
    "safe_position",
    "sealed_extents",
    "store_uri",
    "write_sealed",
]

FORMAT: Final = 1
_MAX_BYTES: Final = 65_536

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class SealedState(msgspec.Struct, frozen=True):
    """How far a log is sealed, as recorded in its folder."""

    log: str
    """The UUID of the log."""
    first: _Count
    """The first position of its history."""
    end: _Count
    """The position after the last sealed row."""
    raw_bytes: _Count
    """The bytes of the Arrow segments that were sealed."""
    stored: bool
    """Whether sealed rows are in a store, and survive this machine."""
    floor: _Count = 0
    """No reader may go back below it: a manifest without those rows is about to be published, if it is above `first`.
    It never becomes lower."""


class _Checked(msgspec.Struct):
    weirpool: int
    checksum: str


class _Store(msgspec.Struct):
    weirpool: int
    uri: str


def load_sealed(folder: Path, log: str | None = None) -> SealedState | None:
    """Return how far the log in a folder is sealed; None if it is not sealed at all.

    It raises `JournalCorrupt` if the file is damaged, or belongs to another log than the one with the UUID `log`.
    """
    path = folder / SEALED
    data = read_file(path, _MAX_BYTES + 1)
    if data is None:
        return None
    try:
        state = msgspec.json.decode(data, type=SealedState)
        if msgspec.json.decode(data, type=_Checked).checksum != _checksum(state):
            raise ValueError("its checksum does not match")
        if log is not None and state.log != log:
            raise ValueError(f"it belongs to log {state.log[:64]}")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{path}: does not say how far this log is sealed ({error}); seal the log again, which writes the file"
        ) from None
    return state


def write_sealed(folder: Path, state: SealedState) -> None:
    """Record how far a log is sealed; it is durable on return."""
    fields = {"weirpool": FORMAT, **msgspec.to_builtins(state), "checksum": _checksum(state)}
    with disk_errors(folder / SEALED, "be written"):
        replace_file(folder / SEALED, msgspec.json.encode(fields) + b"\n")


def record_sealed(folder: Path, state: SealedState) -> None:
    """Record how far a log is sealed, unless the file is the same, or another process has recorded more meanwhile."""
    with disk_errors(folder / SEALED, "be written"), locked(folder):
        try:
            known = load_sealed(folder, state.log)
        except JournalCorrupt:
            known = None
        floor = max(state.floor, state.first, 0 if known is None else known.floor)
        state = msgspec.structs.replace(state, floor=floor)
        if known is None or (known != state and known.end <= state.end and known.first <= state.first):
            write_sealed(folder, state)


def raise_floor(folder: Path, log: str, floor: int) -> bool:
    """Let no reader on this machine go back below a position; return False if the log is not sealed.

    The caller holds the log's own lock, under which readers record what they need.
    """
    with disk_errors(folder / SEALED, "be written"), locked(folder):
        known = load_sealed(folder, log)
        if known is not None and known.floor < floor:
            write_sealed(folder, msgspec.structs.replace(known, floor=floor))
    return known is not None


def safe_position(folder: Path) -> int:
    """Return the position below which the rows of a log are in a store, and survive this machine; 0 if none are."""
    state = _readable(folder)
    return state.end if state is not None and state.stored else 0


def sealed_extents(folder: Path, first: int) -> list[Extent]:
    """Return the sealed rows before the first Arrow segment if they are only on this machine, as one extent."""
    state = _readable(folder)
    if state is None or state.stored or first <= state.first:
        return []
    whole = Extent(state.first, state.end, state.raw_bytes)
    end = min(state.end, first)
    return [Extent(state.first, end, whole.bytes_between(state.first, end))]


def _readable(folder: Path) -> SealedState | None:
    """Return how far a log is sealed; None if that is unknown, which frees nothing."""
    try:
        return load_sealed(folder)
    except JournalCorrupt:
        return None


def store_uri(journal: str | os.PathLike[str]) -> str | None:
    """Return the URI of the store with the sealed segments of a journal's folder; None if they are in the folder."""
    path = Path(journal, STORE)
    data = read_file(path, _MAX_BYTES + 1)
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data, type=_Store)
        if found.weirpool != FORMAT:
            raise ValueError(f"format {found.weirpool}")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{path}: does not name a store ({error}); restore the file, or remove it and seal with the option store"
        ) from None
    return found.uri


def check_store(journal: str | os.PathLike[str], uri: str) -> bool:
    """Return True if a journal has this store, and False if it has none; `JournalMismatch` if it has another one."""
    known = store_uri(journal)
    if known is not None and _place(known) != _place(uri):
        raise JournalMismatch(
            f"{os.fspath(journal)}: the sealed segments of this journal are in {known}, not in {uri}; to move them, "
            f"copy that store, then change the URI in {STORE}"
        )
    return known is not None


def record_store(journal: str | os.PathLike[str], uri: str) -> None:
    """Record the store of a journal's sealed segments; errors as for `check_store`."""
    if not check_store(journal, uri):
        path = Path(journal, STORE)
        with disk_errors(path, "be written"):
            make_folder(path.parent)
            replace_file(path, msgspec.json.encode(_Store(FORMAT, uri)) + b"\n")


def _place(uri: str) -> tuple[str, list[str]]:
    """Return what a URI says, however it is written."""
    path, _, options = uri.partition("?")
    return path.rstrip("/"), sorted(options.split("&"))


def _checksum(state: SealedState) -> str:
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(state))
