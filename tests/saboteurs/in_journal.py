"""Mistakes in the journal: what is durable, what is damaged, and what is gone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from weirpool.journal import (
    damage,
    disk,
    feedlog,
    gaps,
    identity,
    index,
    losses,
    reader,
    recovery,
    retention,
    segment,
    storage,
    survey,
    tip,
    trimming,
    writer,
)
from weirpool.journal.damage import Promise
from weirpool.journal.format import preamble
from weirpool.journal.mark import Mark
from weirpool.journal.recovery import Tail

from .patching import edited, replaced, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def _no_sync(folder: Path) -> None:
    """Sync nothing."""


def append_without_fsync() -> Sabotage:
    return replaced((segment.SegmentFile, "sync", lambda self: None))


def fsync_error_ignored() -> Sabotage:
    def sync(self: segment.SegmentFile) -> None:
        with suppress(OSError):
            os.fsync(self._fd)

    return replaced((segment.SegmentFile, "sync", sync))


def segment_name_not_synced() -> Sabotage:
    return replaced((segment, "sync_folder", _no_sync))


def folder_above_not_synced() -> Sabotage:
    def in_a_log(folder: Path) -> None:
        if folder.name.startswith("source="):
            disk.sync_folder(folder)

    edit = "if fsync:", "if False:"
    return together(
        replaced((writer, "sync_folder", in_a_log)),
        edited(writer, "make_folder", edit),
        edited(feedlog, "make_folder", edit),
    )


def mark_before_sync() -> Sabotage:
    return edited(
        tip.Tip,
        "append",
        ("    segment.append(", "    segment._fsync = False\n        segment.append("),
        ("segment.cut(before))", "segment.cut(before))\n        segment._fsync = self._fsync\n        segment.sync()"),
    )


def trimming_without_sync() -> Sabotage:
    return replaced((trimming, "sync_folder", _no_sync))


def gaps_trimmed() -> Sabotage:
    return replaced((trimming, "_recorded", lambda *arguments: iter(())))


def gaps_not_durable() -> Sabotage:
    def replace(path: Path, data: bytes) -> None:
        disk.replace_file(path, data, fsync=False)

    return replaced((gaps, "replace_file", replace))


def gaps_kept_after_deletion() -> Sabotage:
    return edited(
        retention,
        "delete_free",
        ("    gaps.add(folder, [gap for", "    kept = ([gap for"),
        ("    return free[-1]", "    gaps.add(folder, kept)\n    return free[-1]"),
    )


def cursor_not_durable() -> Sabotage:
    def replace(path: Path, data: bytes) -> None:
        disk.replace_file(path, data, fsync=False)

    return replaced((retention, "replace_file", replace))


def state_of_the_batch_before() -> Sabotage:
    real = writer.JournalWriter._note

    def note(self: writer.JournalWriter, rows: int, now: int, state: bytes | None, *rest: Any) -> Any:
        return real(self, rows, now, self._state or state, *rest)

    return replaced((writer.JournalWriter, "_note", note))


def short_file_is_clamped() -> Sabotage:
    real = index.Index.extend

    def extend(self: index.Index, content: Any, promise: Promise) -> None:
        short = promise.size is not None and content.size < promise.size
        real(self, content, Promise() if short else promise)

    return replaced((index.Index, "extend", extend))


def chain_not_checked() -> Sabotage:
    edit = "if head is not None and entry.note.prev != head:", "if False:"
    return together(edited(index, "scan", edit), edited(damage, "scan", edit))


def segments_not_linked() -> Sabotage:
    def nothing(*arguments: Any) -> None:
        """Compare nothing."""

    return replaced((survey, "link", nothing), (reader, "link", nothing))


def body_not_checked() -> Sabotage:
    return together(
        edited(index, "check", ("if xxhash.xxh3_128_digest(view[header_bytes:]) != checksum:", "if False:")),
        replaced((recovery, "body_is_sound", lambda content, entry: True)),
    )


def foreign_uuid_accepted() -> Sabotage:
    def size(content: Any, log: str) -> int:
        return len(preamble(log))

    return replaced((index, "preamble_bytes", size), (damage, "preamble_bytes", size))


def head_not_compared() -> Sabotage:
    def promised(mark: Mark) -> Promise:
        return Promise(mark.end, None, mark.offset)

    return replaced((survey, "promised", promised), (reader, "promised", promised))


def chain_moves_first() -> Sabotage:
    return edited(
        writer.JournalWriter,
        "_append",
        ("    end = self._position", "    self._head = batch.digest\n    end = self._position"),
    )


def mark_ignored_by_writers() -> Sabotage:
    real = losses.recover

    def recover(log: storage.LogFolder, uuid: str, mark: Mark | None) -> Tail:
        return real(log, uuid, None)

    return replaced((losses, "recover", recover))


def positions_reused() -> Sabotage:
    real = losses.recover

    def recover(*arguments: Any) -> Tail:
        tail = real(*arguments)
        if not tail.damage:
            return tail
        end = tail.damage[0][1].first
        return dataclasses.replace(tail, first=end, position=end, size=0)

    return replaced((losses, "recover", recover))


def loss_accepted_in_silence() -> Sabotage:
    return replaced((losses, "add", lambda folder, gaps: None), (losses, "is_accepted", lambda damage, gaps: True))


def other_request_accepted() -> Sabotage:
    return replaced((identity.Request, "check", lambda self, identity, folder: None))


def other_log_under_a_reader() -> Sabotage:
    return replaced((reader.JournalReader, "_same_log", lambda self: None))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "append without fsync",
        "append returns before its rows are on disk",
        "THREATS 80",
        "power cuts",
        append_without_fsync,
    ),
    Saboteur(
        "error of fsync ignored",
        "append returns although syncing its rows failed",
        "",
        "errors and power cuts",
        fsync_error_ignored,
    ),
    Saboteur(
        "name of a segment not synced",
        "the folder is not synced after a new segment gets its name",
        "",
        "power cuts",
        segment_name_not_synced,
    ),
    Saboteur(
        "folder above a log not synced",
        "a new log is durable, but the folder that contains it is not",
        "",
        "power cuts",
        folder_above_not_synced,
    ),
    Saboteur(
        "mark before its rows",
        "the durable mark covers rows that are not synced yet",
        "",
        "power cuts",
        mark_before_sync,
    ),
    Saboteur(
        "trimming without syncs",
        "segments are deleted without a sync after each one, so a power cut may restore only the first",
        "",
        "power cuts",
        trimming_without_sync,
    ),
    Saboteur("gaps trimmed", "gaps disappear with the segments that recorded them", "PL6", "power cuts", gaps_trimmed),
    Saboteur(
        "kept gaps not durable",
        "the file of kept gaps is not synced before segments are deleted",
        "PL6",
        "power cuts",
        gaps_not_durable,
    ),
    Saboteur(
        "gaps kept too late",
        "segments are deleted before their gaps are stored elsewhere",
        "PL6",
        "power cuts",
        gaps_kept_after_deletion,
    ),
    Saboteur(
        "reader's position not durable",
        "the position that a reader commits is not synced",
        "",
        "power cuts",
        cursor_not_durable,
    ),
    Saboteur(
        "state of the previous batch",
        "a batch contains the collector's state of the previous batch",
        "",
        "power cuts",
        state_of_the_batch_before,
    ),
    Saboteur(
        "short file accepted",
        "a segment shorter than its durable mark counts as valid up to its end",
        "SF1",
        "damaged logs",
        short_file_is_clamped,
    ),
    Saboteur(
        "chain not checked",
        "a batch may follow a different batch than it was written after",
        "THREATS 97",
        "damaged logs",
        chain_not_checked,
    ),
    Saboteur(
        "segments not linked",
        "a segment may follow a different batch than it was written after",
        "THREATS 97",
        "damaged logs",
        segments_not_linked,
    ),
    Saboteur(
        "rows not checked",
        "the checksum of a batch's rows is not compared",
        "THREATS 97",
        "damaged logs",
        body_not_checked,
    ),
    Saboteur(
        "segments of another log", "the UUID in a segment is not compared", "PL4", "damaged logs", foreign_uuid_accepted
    ),
    Saboteur(
        "head of the mark not compared",
        "the last batch may differ from the one that the durable mark names",
        "THREATS 97",
        "damaged logs",
        head_not_compared,
    ),
    Saboteur(
        "failed batch advances the chain",
        "a batch that could not be written counts as the previous batch of the next one",
        "",
        "disk errors",
        chain_moves_first,
    ),
    Saboteur(
        "mark ignored by writers",
        "a writer continues at the end of the files, even if the durable mark is further",
        "SF1",
        "a disk that lies",
        mark_ignored_by_writers,
    ),
    Saboteur(
        "positions used twice",
        "positions that were accepted as lost are assigned to new rows",
        "SF1",
        "accepted losses",
        positions_reused,
    ),
    Saboteur(
        "loss accepted silently",
        "a loss is accepted, but no gap is recorded",
        "SF1",
        "accepted losses",
        loss_accepted_in_silence,
    ),
    Saboteur(
        "another request collected",
        "a log is continued with a different request",
        "PL4",
        "identities",
        other_request_accepted,
    ),
    Saboteur(
        "log recreated under a reader",
        "a reader continues in a log that was deleted and created again",
        "PL4",
        "identities",
        other_log_under_a_reader,
    ),
)
