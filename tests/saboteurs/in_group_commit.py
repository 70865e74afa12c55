"""Mistakes in group commit: what is durable in redo files, and for how long they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.journal import redo, tip, writer

from .patching import edited
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def redo_file_used_too_early() -> Sabotage:
    return edited(
        redo.Redo, "_room", ("while other.unsynced:\n        self._sync_some(other)", "other.unsynced.clear()")
    )


def redo_file_not_synced() -> Sabotage:
    return edited(redo.Redo, "write", ("os.fdatasync(file.fd)", "pass"))


def reliance_not_durable() -> Sabotage:
    return edited(tip.Tip, "rely_on", ("reliance.encode())", "reliance.encode(), fsync=False)"))


def settled_without_sync() -> Sabotage:
    return edited(tip.Tip, "settle", ("self.sync()", "pass"))


def replayed_rows_not_synced() -> Sabotage:
    return edited(writer, "replay", ("os.fsync(fd)", "pass"))


def reliance_removed_first() -> Sabotage:
    end = "(folder / UNSYNCED).unlink()\n            sync_folder(folder)\n"
    sync = "for fd in files.values():\n                os.fsync(fd)\n"
    return edited(writer, "replay", (f"{sync}            {end}", f"{end}            {sync}"))


def needed_redo_files_swept() -> Sabotage:
    return edited(
        redo, "sweep", ("for name in left - {each.redo for each in known if each is not None}:", "for name in left:")
    )


SABOTEURS: Sequence[Saboteur] = tuple(
    Saboteur(name, mistake, "", "group commits", sabotage)
    for name, mistake, sabotage in (
        (
            "redo file used too early",
            "a redo file is written again before its logs are synced",
            redo_file_used_too_early,
        ),
        ("redo file not synced", "the write that many logs share is not synced", redo_file_not_synced),
        (
            "reliance not durable",
            "that a log needs redo files is not synced before they have its rows",
            reliance_not_durable,
        ),
        (
            "settled without a sync",
            "a log needs no redo files any more, and its segment is not synced",
            settled_without_sync,
        ),
        ("replayed rows not synced", "rows from redo files are not synced in their segment", replayed_rows_not_synced),
        ("reliance removed first", "redo files are given up before their rows are synced", reliance_removed_first),
        (
            "needed redo files swept",
            "redo files of a dead process are removed while a log needs them",
            needed_redo_files_swept,
        ),
    )
)
