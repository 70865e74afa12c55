"""Every verb of `weirpool journal` on a folder, on a store, and on a journal that a collector serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.journal.logs import SOURCE, flip, segment, write
from tests.objects.stores import numbers
from tests.serving.served import Served, serving
from weirpool import Service
from weirpool.archive import SealOptions, seal
from weirpool.journal import Journal
from weirpool.serving.door import OPERATOR_TOKEN, TOKEN, environment_token, journal_server
from weirpool.serving.journals import ServedJournals

READERS = "WEIRPOOL_JOURNAL_TOKEN"
SERVED = ["served", "operator", "reader"]


@dataclass
class Place:
    """A journal, as a verb names it."""

    name: str
    path: str
    folder: Path


class Guarded(Served):
    """A collector that asks for tokens, and tells operators from readers."""

    async def _main(self) -> None:
        import asyncio

        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        journals = ServedJournals({"j": str(self._options["folder"])})
        tokens = {"token": environment_token(), "operator": environment_token(OPERATOR_TOKEN)}
        async with journal_server(journals, self.url, **tokens) as self.server:  # type: ignore[arg-type]
            self.url = self.server.urls[0]
            self._ready.set()
            await self._stop.wait()


@contextmanager
def guarded(folder: Path) -> Iterator[str]:
    """Serve a journal to those who show a token, of readers or of operators."""
    served = Guarded(Service(), "rsocket+tcp://127.0.0.1:0", folder=folder)
    served.start()
    try:
        yield served.url
    finally:
        served.stop()


@pytest.fixture(params=["folder", "store", *SERVED])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A journal of 30 rows with a reader at 25, or a store with 20 of them."""
    name: str = request.param
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    folder = tmp_path / "journal"
    write(folder, 10, 10, 10, segment_bytes=1)
    Journal(folder).seek(SOURCE, "export", 25)
    if name == "store":
        uri = f"memory://places-{next(numbers)}"
        while seal(folder, SOURCE, SealOptions(store=uri, target_bytes=1), force=True):
            pass
        yield Place(name, uri, folder)
    elif name == "folder":
        yield Place(name, str(folder), folder)
    elif name == "served":
        with serving(folder) as served:
            yield Place(name, served.url, folder)
    else:
        for variable, token in ((TOKEN, "reader"), (OPERATOR_TOKEN, "operator"), (READERS, name)):
            monkeypatch.setenv(variable, token)
        with guarded(folder) as url:
            yield Place(name, url, folder)


def held(place: Place) -> int:
    """Return the rows of a journal as a verb sees them."""
    return 20 if place.name == "store" else 30


def test_rows_are_listed_printed_and_exported(weirpool: Weirpool, place: Place, tmp_path: Path) -> None:
    end = held(place)
    (found,) = weirpool("journal", "ls", place.path, "--json").objects
    assert (found["source"], found["first"], found["end"], found["damaged"]) == (SOURCE, 0, end, [])
    last = [b"%d" % number for number in range(end - 3, end)]
    assert weirpool("journal", "tail", place.path, "-n", "3").lines == last
    assert weirpool("journal", "dump", place.path, "--from", "-3").lines == last
    out = tmp_path / "rows.parquet"
    assert weirpool("journal", "dump", place.path, "--format", "parquet", "-o", str(out)).code == 0
    import pyarrow.parquet as pq

    assert pq.read_table(out)["position"].to_pylist() == [*range(end)]


@pytest.mark.parametrize("verb", ["lag", "readers"])
def test_readers_are_listed(weirpool: Weirpool, place: Place, verb: str) -> None:
    result = weirpool("journal", verb, place.path, "--json")
    if place.name == "store":
        assert result.code == 2 and "its readers, and what is trimmed for them, are where the journal is" in result.err
        assert_one_line(result)
        return
    (found,) = result.objects
    assert (found["source"], found["reader"], found["position"]) == (SOURCE, "export", 25)
    assert found["rows"] == 5 if verb == "lag" else found["committed"] is not None
    assert found == weirpool("journal", verb, str(place.folder), "--json").objects[0] | {
        name: found[name] for name in ("seconds",) if name in found
    }


def test_rows_are_verified(weirpool: Weirpool, place: Place) -> None:
    (report,) = weirpool("journal", "verify", place.path, "--json").objects
    assert report["sound"] and (report["first"], report["end"], report["rows"]) == (0, held(place), held(place))
    if place.name == "store":
        return
    (there,) = weirpool("journal", "verify", str(place.folder), "--json").objects
    assert report == there and report["head"]
    path = segment(place.folder / f"source={SOURCE}", 10)
    flip(path, path.stat().st_size - 1)
    result = weirpool("journal", "verify", place.path)
    assert result.code == 1 and "positions 10 to 19 are damaged (the checksum of its body does not match)" in result.err
    assert_one_line(result)


def test_a_journal_is_copied_and_brought_up_to_date(weirpool: Weirpool, place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (first,) = weirpool("journal", "cp", place.path, str(copy), "--json").objects
    assert (first["first"], first["end"]) == (0, held(place)) and first["copied"] > 0
    assert weirpool("journal", "dump", str(copy)).lines == [b"%d" % number for number in range(held(place))]
    (again,) = weirpool("journal", "cp", place.path, str(copy), "--json").objects
    assert again["copied"] == 0
    result = weirpool("journal", "verify", str(copy), "--against", place.path)
    assert (result.code, result.err) == (0, "")
    if place.name == "store":
        return
    write(place.folder, 5)
    (more,) = weirpool("journal", "cp", place.path, str(copy), "--json").objects
    assert more["end"] == 35 and 0 < more["copied"] < first["copied"]
    assert weirpool("journal", "verify", place.path, "--against", str(copy)).code == 0
    # Neither secrets nor readers go along.
    names = {path.name for path in (copy / f"source={SOURCE}").iterdir() if path.suffix != ".arrows"}
    assert names <= {"_log.json", "_durable", "_lock", "_trimmed"}


@pytest.mark.parametrize("place", ["folder", *SERVED], indirect=True)
def test_a_copy_that_has_parted_is_told(weirpool: Weirpool, place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert weirpool("journal", "cp", place.path, str(copy)).code == 0
    write(copy, 3)
    write(place.folder, 7)
    result = weirpool("journal", "cp", place.path, str(copy))
    assert result.code == 1 and "remove the copy, and copy the log again" in result.err
    assert_one_line(result)


CHANGES = {
    "seek": ("seek", "export", "--to", "20"),
    "forget": ("forget", "export"),
    "delete": ("trim", "--to", "20"),
}


@pytest.mark.parametrize("action", CHANGES)
def test_operators_change_what_readers_may_not(weirpool: Weirpool, place: Place, action: str) -> None:
    verb, *options = CHANGES[action]
    before = _state(place)
    planned = weirpool("journal", verb, place.path, *options, "--dry-run")
    assert _state(place) == before
    result = weirpool("journal", verb, place.path, *options)
    if place.name == "store":
        assert result.code == planned.code == 2 and "can only be read: its readers" in result.err
        assert_one_line(result)
    elif place.name in ("served", "reader"):
        assert planned.code == 0 and b"would" in planned.out
        assert result.code == 1 and f"{action} is not allowed to this client; " in result.err
        assert_one_line(result)
        assert _state(place) == before
    else:
        assert (planned.code, result.code, result.err) == (0, 0, "")
        changed = {"seek": ({"export": 20}, 0), "forget": ({}, 0), "delete": ({"export": 25}, 20)}
        assert _state(place) == changed[action]


def _state(place: Place) -> tuple[dict[str, int], int]:
    journal = Journal(place.folder)
    return {each.reader: each.position for each in journal.lags(SOURCE)}, journal.reader(SOURCE).first


@pytest.mark.parametrize("place", ["folder", *SERVED], indirect=True)
def test_a_trim_keeps_what_a_reader_needs_everywhere(weirpool: Weirpool, place: Place) -> None:
    Journal(place.folder).seek(SOURCE, "export", 5)
    for options in ((), ("--dry-run",)):
        result = weirpool("journal", "trim", place.path, "--to", "20", *options)
        assert result.code == 2 and "have not committed the rows below 20: export at 5" in result.err
    if place.name in ("folder", "operator"):
        assert weirpool("journal", "trim", place.path, "--to", "20", "--force").code == 0
        assert Journal(place.folder).reader(SOURCE).first == 20


@pytest.mark.parametrize("verb", ["seal", "repair"])
def test_work_on_files_says_where_to_do_it(weirpool: Weirpool, place: Place, verb: str) -> None:
    result = weirpool("journal", verb, place.path)
    if place.name == "folder":
        assert result.code == 0
        return
    assert result.code == 2
    assert (
        f"the files of {place.path} can only be read from here; to write, seal or repair a journal, use" in result.err
    )
    assert_one_line(result)


@pytest.mark.parametrize("place", SERVED, indirect=True)
def test_sealed_rows_of_a_served_journal_are_verified_and_not_copied(
    weirpool: Weirpool, place: Place, tmp_path: Path
) -> None:
    seal(place.folder, SOURCE, SealOptions(target_bytes=1), force=True)
    (report,) = weirpool("journal", "verify", place.path, "--json").objects
    (there,) = weirpool("journal", "verify", str(place.folder), "--json").objects
    for name in ("uuid", "first", "end", "rows", "sealed", "segments", "gaps", "sound", "head"):
        assert report[name] == there[name], name
    result = weirpool("journal", "cp", place.path, str(tmp_path / "copy"))
    assert (
        result.code == 2 and "has sealed rows, which are not copied over the network; copy it where it is" in result.err
    )
    result = weirpool("journal", "verify", place.path, "--against", str(place.folder))
    assert result.code == 1 and "has sealed rows, which are not compared over the network" in result.err
    (file,) = (place.folder / f"source={SOURCE}").glob("*.parquet")
    flip(file, 100)
    result = weirpool("journal", "verify", place.path)
    assert result.code == 1 and "is damaged (the checksum of column" in result.err
