"""A laboratory for damage: random logs, random damage to any of their files, and what must be true afterwards.

Everything follows from a seed. A finding is a sentence; none is what a test wants.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from tests.journal.logs import SOURCE
from weirpool.errors import JournalError
from weirpool.journal import ITEMS, Journal, JournalReader, JournalWriter
from weirpool.journal.damage import headers
from weirpool.journal.format import NO_ITEMS
from weirpool.journal.layout import DURABLE, IDENTITY, log_folder, segment_name
from weirpool.journal.retention import trim

__all__ = ["DAMAGES", "Sample", "experiment", "made"]

READER = "spark"


@dataclass
class Sample:
    """A log, and what it was before it was damaged.

    Attributes:
        path: The journal.
        stale: A copy of the log from earlier, which was sound.
        foreign: Another log that was made in the same way.
        written: The data of all its rows, by position.
        rows: The data of the rows that are left, by position.
        gaps: The positions of its gaps.
        end: The position of the next row.
        touched: The files that were damaged.
    """

    path: Path
    stale: Path
    foreign: Path
    written: dict[int, bytes] = field(default_factory=dict)
    rows: dict[int, bytes] = field(default_factory=dict)
    gaps: list[int] = field(default_factory=list)
    end: int = 0
    touched: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return log_folder(self.path, SOURCE)

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.arrows"))

    def files(self) -> list[Path]:
        """Return all files of the log that mean anything."""
        found = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return [path for path in found if path.name != "_lock" and not path.name.endswith((".lock", ".damaged"))]


def made(root: Path, seed: int) -> Sample:
    """Make a log, a copy of it from earlier, and a foreign log."""
    rng = random.Random(f"log {seed}")
    sample = Sample(root / "log", root / "stale", log_folder(root / "foreign", SOURCE))
    _write(root / "foreign", random.Random(f"foreign {seed}"), None)
    _write(sample.path, rng, sample)
    return sample


def _write(path: Path, rng: random.Random, sample: Sample | None) -> None:
    rows: dict[int, bytes] = {}
    gaps: list[int] = []
    folder, first, committed = log_folder(path, SOURCE), 0, 0
    size = rng.choice((1, 900, 2_000, 4_000, 1 << 20))
    steps = rng.randint(2, 12)
    copied = rng.randrange(1, steps)
    writer = JournalWriter.open(path, SOURCE, segment_bytes=size, fsync=False)
    for step in range(steps):
        if step == copied and sample is not None:
            shutil.copytree(folder, sample.stale)
        kind = rng.choices(("rows", "gap", "record", "trim", "reopen"), (6, 1, 1, 1.5, 0.7))[0]
        if kind == "rows" or step == 0:
            data = [b"%d %d" % (writer.position + row, rng.getrandbits(30)) for row in range(rng.randint(1, 5))]
            rows |= {writer.position + at: text for at, text in enumerate(data)}
            batch = pa.record_batch([pa.array(data, pa.binary()), pa.nulls(len(data), pa.binary())], schema=ITEMS)
            writer.append(batch, "stream", b"state %d" % step)
        elif kind == "gap":
            gaps.append(writer.append_gap(f"gap {step}"))
        elif kind == "record":
            writer.append(NO_ITEMS, "", b"checkpoint %d" % step)
        elif kind == "trim":
            committed = max(committed, rng.randint(0, writer.position))
            first = trim(folder, committed, reader=READER, retain_bytes=0)
            writer.refresh()
        else:
            writer.close()
            writer = JournalWriter.open(path, SOURCE, segment_bytes=size, fsync=False)
    writer.close()
    if sample is not None:
        sample.written = rows
        sample.rows = {position: data for position, data in rows.items() if position >= first}
        sample.gaps, sample.end = gaps, writer.position


# Damage. Each returns what it has done, or nothing if it could not.

Damage = Callable[[Sample, random.Random], str]


def _any_file(sample: Sample, rng: random.Random) -> Path:
    # Segments and small files alike.
    return rng.choice(rng.choice((sample.segments(), sample.files())) or sample.files())


def flip(sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    content = bytearray(path.read_bytes())
    if not content:
        return ""
    at = rng.randrange(len(content))
    content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return f"flip {path.name} {at}"


def cut(sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    size = rng.randint(0, max(0, path.stat().st_size - 1))
    os.truncate(path, size)
    return f"cut {path.name} {size}"


def zero(sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    content = bytearray(path.read_bytes())
    start = rng.randint(0, len(content)) // 512 * 512
    end = min(len(content), start + rng.choice((16, 512, 4096)))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)
    return f"zero {path.name} {start} {end}"


def garbage(sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 600)))
    return f"garbage {path.name}"


def missing(sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    path.unlink()
    return f"missing {path.name}"


def swap(sample: Sample, rng: random.Random) -> str:
    if len(sample.segments()) < 2:
        return ""
    one, two = rng.sample(sample.segments(), 2)
    before, after = one.read_bytes(), two.read_bytes()
    one.write_bytes(after)
    two.write_bytes(before)
    return f"swap {one.name} {two.name}"


def _batches(path: Path) -> list[tuple[int, int]]:
    """Return where the batches of a segment begin and end, as far as it is sound."""
    content = pa.py_buffer(path.read_bytes())
    return [(entry.offset, entry.end_offset) for entry in headers(content, 0)]


def batches(sample: Sample, rng: random.Random) -> str:
    """Repeat, remove, swap, or put elsewhere whole batches."""
    if not sample.segments():
        return ""
    path, other = rng.choice(sample.segments()), rng.choice(sample.segments())
    mine, theirs = _batches(path), _batches(other)
    if not mine or not theirs:
        return ""
    content, source = path.read_bytes(), other.read_bytes()
    (start, end), (first, behind) = rng.choice(mine), rng.choice(theirs)
    how = rng.choice(("repeat", "remove", "replace", "insert"))
    new = {"repeat": content[start:end] * 2, "remove": b"", "replace": source[first:behind]}.get(
        how, source[first:behind] + content[start:end]
    )
    path.write_bytes(content[:start] + new + content[end:])
    return f"{how} a batch {path.name} {start} {other.name} {first}"


def _a_name(sample: Sample, rng: random.Random) -> Path:
    near = rng.choice([0, sample.end, *(int(path.stem) for path in sample.segments())])
    position = rng.choice((near, near + 1, max(0, near - 1), rng.randint(0, sample.end + 3), sample.end + 500))
    return sample.folder / segment_name(position)


def rename(sample: Sample, rng: random.Random) -> str:
    if not sample.segments():
        return ""
    path, name = rng.choice(sample.segments()), _a_name(sample, rng)
    path.rename(name)
    return f"rename {path.name} {name.name}"


def copy(sample: Sample, rng: random.Random) -> str:
    """Have a segment, of this log or another, once more under a name that may be another one's."""
    sources = [*sample.segments(), *sorted(sample.foreign.glob("*.arrows")), *sorted(sample.stale.glob("*.arrows"))]
    if not sources:
        return ""
    path, name = rng.choice(sources), _a_name(sample, rng)
    if path == name:
        return ""
    content = path.read_bytes()
    if path.parent == sample.folder and not name.exists() and rng.random() < 0.3:
        os.link(path, name)
    else:
        name.unlink(missing_ok=True)
        name.write_bytes(content)
    return f"copy {path.parent.name} {path.name} {name.name}"


def junk(sample: Sample, rng: random.Random) -> str:
    name = _a_name(sample, rng)
    name.write_bytes(rng.choice((b"", bytes(700), rng.randbytes(700))))
    return f"junk {name.name}"


def _from(folder: Path, sample: Sample, rng: random.Random) -> str:
    path = _any_file(sample, rng)
    source = folder / path.relative_to(sample.folder)
    if not source.is_file():
        return ""
    path.write_bytes(source.read_bytes())
    return path.name


def stale(sample: Sample, rng: random.Random) -> str:
    name = _from(sample.stale, sample, rng)
    return name and f"stale {name}"


def foreign(sample: Sample, rng: random.Random) -> str:
    name = _from(sample.foreign, sample, rng)
    return name and f"foreign {name}"


DAMAGES: list[Damage] = [
    flip, cut, zero, garbage, missing, swap, batches, rename, copy, junk, stale, foreign,
]  # fmt: skip


# What must be true.


def experiment(root: Path, seed: int) -> list[str]:
    """Damage a log, and return what went wrong with it, a sentence each."""
    sample = made(root, seed)
    rng = random.Random(f"damage {seed}")
    before = {path.name: path.read_bytes() for path in sample.files()}
    for _ in range(rng.choice((1, 1, 2, 3))):
        sample.touched.append(rng.choice(DAMAGES)(sample, rng))
    if f"foreign {IDENTITY}" in sample.touched and sum("foreign" in each for each in sample.touched) > 1:
        # That is another log.
        return []
    after = {path.name: path.read_bytes() for path in sample.files()}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    try:
        found = list(_wrong(sample, before, changed))
    except JournalError as error:
        found = [f"{type(error).__name__} where none may be: {error}"]
    return [f"seed {seed} {sample.touched}: {text}" for text in found]


def _wrong(sample: Sample, before: dict[str, bytes], changed: set[str]) -> list[str]:
    wrong: list[str] = []
    open_end = DURABLE in changed
    readable, reported = _before_repair(sample, open_end, wrong)
    # What lies untouched in its place is not lost, unless its end is another one than the next segment tells.
    ends = [*sorted(int(name[:20]) for name in before if name.endswith(".arrows"))[1:], sample.end]
    for name, end in zip(sorted(name for name in before if name.endswith(".arrows")), ends, strict=True):
        if name not in changed:
            readable |= {position for position in range(int(name[:20]), end) if position in sample.rows}
    readable -= reported
    contents = _contents(sample.folder)
    try:
        dry = Journal(sample.path).repair(SOURCE, accept_loss=True)
    except JournalError as error:
        if "do not identify the log" in str(error) and IDENTITY in changed:
            return wrong
        raise
    if _contents(sample.folder) != contents:
        wrong.append("a dry run changes files")
    done = Journal(sample.path).repair(SOURCE, apply=True, accept_loss=True)
    if done.refused:
        wrong.append(f"the repair is refused: {done.refused}")
    if (dry.actions, dry.lost) != (done.actions, done.lost):
        wrong.append(f"a dry run says {dry.actions}, and then is done {done.actions}")
    _after_repair(sample, readable, changed, open_end, wrong)
    return wrong


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _rows(reader: JournalReader, start: int, end: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for batch in reader.read(start, end):
        positions, data = batch["position"].to_pylist(), batch["data"].to_pylist()
        if set(positions) & found.keys() or positions != sorted(positions):
            found[-1] = b"a position is there twice"
        found |= dict(zip(positions, data, strict=True))
    return found


def _before_repair(sample: Sample, open_end: bool, wrong: list[str]) -> tuple[set[int], set[int]]:
    """Return the positions that can be read, and those that `verify` reports."""
    report = Journal(sample.path).verify([SOURCE])[SOURCE]
    readable: set[int] = set()
    whole: dict[int, bytes] | None = None
    try:
        reader = JournalReader(sample.path, SOURCE)
        readable = _singles(sample, reader, wrong)
        whole = _rows(reader, reader.first, reader.end)
    except JournalError as error:
        if report.sound:
            wrong.append(f"verify finds it sound, and reading says {error}")
    if whole is not None and report.sound:
        whole = {at: data for at, data in whole.items() if at in sample.rows or sample.written.get(at) != data}
        # A copy without a mark is taken as it is.
        lowest = 0 if (sample.folder / DURABLE).exists() else reader.first
        expected = {at: data for at, data in sample.rows.items() if not open_end or lowest <= at < reader.end}
        if whole != expected:
            wrong.append(f"rows differ without a report: {sorted(whole.items() ^ expected.items())[:4]}")
    # A reader of single rows does not look whether the next segment follows theirs.
    ranges = [range(first, sample.end if end is None else end) for first, end in report.damage]
    return readable, {position for each in ranges for position in each}


def _singles(sample: Sample, reader: JournalReader, wrong: list[str]) -> set[int]:
    readable = set()
    for position in range(reader.first, reader.end):
        try:
            found = _rows(reader, position, position + 1)
        except JournalError:
            continue
        if found != {position: sample.written.get(position)}:
            wrong.append(f"position {position} has {found}, and not {sample.written.get(position)!r}")
        readable.add(position)
    return readable


def _after_repair(sample: Sample, readable: set[int], changed: set[str], open_end: bool, wrong: list[str]) -> None:
    again = Journal(sample.path).repair(SOURCE, accept_loss=True)
    if again.actions:
        wrong.append(f"a second repair wants {again.actions}")
    report = Journal(sample.path).verify([SOURCE])[SOURCE]
    if not report.sound:
        wrong.append(f"it is not sound after the repair: {report.problems}")
        return
    reader = JournalReader(sample.path, SOURCE)
    rows, end = _rows(reader, reader.first, reader.end), reader.end
    if wrongly := sorted(rows.items() - sample.written.items()):
        wrong.append(f"rows after the repair were never written: {wrongly[:3]}")
    if taken := sorted(readable - rows.keys()):
        wrong.append(f"the repair takes away the rows at {taken}")
    told = {at for gap in reader.gaps() if gap.lost is not None for at in range(*gap.lost)}
    if silent := sorted(sample.rows.keys() - rows.keys() - told):
        if not (open_end and silent[0] >= end):
            wrong.append(f"rows at {silent} are gone without a gap")
    near = told | {at + 1 for at in told} | {gap.position for gap in reader.gaps()}
    if forgotten := [at for at in sample.gaps if at not in near]:
        if "_gaps" not in changed and not (open_end and forgotten[0] >= end):
            wrong.append(f"gaps at {forgotten} are forgotten")
    if end < sample.end and not open_end:
        wrong.append(f"the log goes on at {end}, and had come to {sample.end}")
    new = b"new"
    with JournalWriter.open(sample.path, SOURCE, segment_bytes=900, fsync=False) as writer:
        if writer.position != end:
            wrong.append(f"the writer goes on at {writer.position}, and not {end}")
        for _ in range(2):
            writer.append(
                pa.record_batch([pa.array([new], pa.binary()), pa.nulls(1, pa.binary())], schema=ITEMS), "stream"
            )
    reader = JournalReader(sample.path, SOURCE)
    if _rows(reader, reader.first, reader.end) != rows | {end: new, end + 1: new}:
        wrong.append("rows differ after an append")
    report = Journal(sample.path).verify([SOURCE])[SOURCE]
    if not report.sound or Journal(sample.path).repair(SOURCE).actions:
        wrong.append(f"it is not sound after an append: {report.problems}")
