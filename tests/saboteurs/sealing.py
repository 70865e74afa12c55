"""The laboratory of sealing: kills and rivals at every step, files that others have left, bit flips, and retention.

The truth is known: each row holds its position. Whatever happens, the log gives all rows back, each once, or says which
it cannot.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa

from tests.archive.changes import OTHER_FILES
from tests.archive.logs import broken, fill, positions
from tests.archive.steps import Crash, Steps
from tests.journal.logs import SOURCE, flip, items
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, retire
from weirpool.archive import sealing as sealer
from weirpool.archive.parquet import footer_bytes
from weirpool.archive.snapshot import snapshot
from weirpool.errors import JournalError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.layout import log_folder

__all__ = ["sealed_files", "sealing"]

COUNTS = (3, 4, 5)
END = sum(COUNTS)
FLIPS = 40


def seal_all(journal: Path, store: str | None = None) -> None:
    """Seal each complete segment."""
    # Through the module, in which mistakes are made.
    while sealer.seal(journal, SOURCE, SealOptions(target_bytes=1, store=store), force=True):
        pass


def retire_all(journal: Path) -> None:
    """Remove all history that readers do not need."""
    retire.retire(journal, SOURCE, SealOptions(keep_bytes=0))


def sealing(folder: Path) -> Iterator[str]:
    """Kill a sealer, or let another one seal, at every step; rows that were durable stay, each once."""

    def kill(journal: Path) -> None:
        raise Crash

    with mock.patch.object(os, "fsync", lambda descriptor: None):
        for what, act in (("a kill", kill), ("another sealer", seal_all)):
            for step, journal in _at_every_step(folder / what.replace(" ", "-"), act):
                yield from (f"{what} at step {step}: {wrong}" for wrong in broken(journal, END, {3, 7}))
        for step, journal in _at_every_step(folder / "rival", retire_all):
            yield from (f"retention at step {step}: {wrong}" for wrong in _unreadable(journal))
        yield from _retired(folder / "retired")
        yield from _in_a_store(folder / "stored")


def _at_every_step(folder: Path, act: Callable[[Path], object]) -> Iterator[tuple[int, Path]]:
    step = 0
    while True:
        step += 1
        journal = folder / f"{step}"
        fill(journal, *COUNTS, gaps=(1, 2))
        reached: list[Path] = []

        def at(journal: Path = journal, reached: list[Path] = reached) -> None:
            reached.append(journal)
            act(journal)

        try:
            # Others wait for the locks under which some names change.
            with Steps(step, at).installed(disk=act not in (seal_all, retire_all)):
                seal_all(journal)
        except (Crash, JournalError):
            pass
        if not reached:
            return
        yield step, journal


def _unreadable(journal: Path) -> Iterator[str]:
    """Yield why not all rows of a log can be read that it says it holds."""
    try:
        reader = Journal(journal).reader(SOURCE)
        if positions(reader) != [*range(reader.first, END)]:
            yield "other rows are read than the log holds"
    except JournalError as error:
        yield f"{type(error).__name__}: {error}"


def _in_a_store(folder: Path) -> Iterator[str]:
    """Lose the machine: what was sealed into a store is there, with its gaps."""
    uri = f"memory://saboteurs-{next(numbers)}"
    fill(folder, *COUNTS, gaps=(1, 2))
    seal_all(folder, uri)
    shutil.rmtree(folder)
    reader = Journal(uri).reader(SOURCE)
    if positions(reader) != [*range(7)]:
        yield "sealed rows are not in the store"
    if [gap.position for gap in reader.gaps()] != [3, 7]:
        yield f"of two gaps, the store has {len(reader.gaps())}"


def _retired(folder: Path) -> Iterator[str]:
    """Remove old history; what a reader has not committed stays."""
    fill(folder, *COUNTS, 6)
    seal_all(folder)
    Journal(folder).trim(SOURCE, 5, reader="slow")
    retire_all(folder)
    try:
        positions(Journal(folder).reader(SOURCE), 5, END)
    except JournalError as error:
        yield f"rows that a reader has not committed were removed: {error}"


def sealed_files(folder: Path) -> Iterator[str]:
    """Exchange or damage a sealed file, before or after it is listed; no reader or other program gets other rows."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        yield from _left_by_others(folder)
        fill(folder / "sound", *COUNTS)
        truth = _rows(folder / "sound")
        seal_all(folder / "sound")
        for seed in range(FLIPS):
            rng = random.Random(seed)
            journal = folder / "flipped"
            shutil.copytree(folder / "sound", journal)
            file = rng.choice(sorted(log_folder(journal, SOURCE).glob("*.parquet")))
            # What follows is checked as a whole.
            flip(file, rng.randrange(4, file.stat().st_size - footer_bytes(file.read_bytes())), rng.randrange(8))
            yield from (f"flip {seed}: {wrong}" for wrong in _unnoticed(journal, truth))
            shutil.rmtree(journal)
        yield from _handed_over(folder / "sound")


def _handed_over(journal: Path) -> Iterator[str]:
    """Put something else in the place of a file that another program is going to read."""
    log = snapshot(journal, SOURCE)
    first, second = (journal / name for name, _ in log.files)
    content, neighbor = first.read_bytes(), second.read_bytes()
    for what, change in OTHER_FILES.items():
        changed = change(content, neighbor)
        if changed is None:
            first.unlink()
        else:
            first.write_bytes(changed)
        try:
            log.check()
        except JournalError:
            continue
        yield f"{what}: the file is handed to another program"
    first.write_bytes(content)
    log.check()


def _left_by_others(folder: Path) -> Iterator[str]:
    """Leave a file of other rows where the next one will be, as a process does that was killed before it listed it."""
    one, other = folder / "one", folder / "other"
    fill(one, *COUNTS)
    shutil.copytree(one, other)
    for path, shift in ((one, 0), (other, 100)):
        with JournalWriter.open(path, SOURCE, segment_bytes=1, fsync=False) as writer:
            for count in (6, 1):
                writer.append(items(writer.position + shift, count), "numbers")
    seal_all(other)
    truth = _rows(one)
    name = f"{END:020d}.parquet"
    shutil.copy(log_folder(other, SOURCE) / name, log_folder(one, SOURCE) / name)
    try:
        seal_all(one)
    except JournalError:
        pass
    if _rows(one) != truth:
        yield "a file of other rows, which another process has left, is taken for the log's"


def _rows(journal: Path) -> pa.Table:
    """Return all rows of a log."""
    reader = Journal(journal).reader(SOURCE)
    return pa.Table.from_batches(reader.read(reader.first, reader.end)).combine_chunks()


def _unnoticed(journal: Path, truth: pa.Table) -> Iterator[str]:
    if not Journal(journal).verify()[SOURCE].problems:
        yield "verify finds the log sound"
    try:
        held = _rows(journal)
    except JournalError:
        return
    # What was flipped may be of no use to a reader.
    if held != truth:
        yield "a reader gets other rows"
