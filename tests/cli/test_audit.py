from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cli.conftest import Weirpool, assert_one_line, serving
from weirpool.archive import seal
from weirpool.journal import ITEMS, Journal, JournalReader, Request

AUDITED = f"{Path(__file__).parent / 'audited.py'}:service"
GUARDED = f"{Path(__file__).parent / 'guarded.py'}:service"
PACKED = f"{Path(__file__).parent / 'audited.py'}:packed"
COUNT = 10_000


@pytest.fixture(scope="module")
def publisher() -> Iterator[str]:
    with serving(AUDITED, "rsocket+tcp://127.0.0.1:0") as (_, urls):
        yield urls[0]


@pytest.fixture
def collected(weirpool: Weirpool, publisher: str, tmp_path: Path) -> Path:
    """Return a journal of the publisher's stream."""
    journal = tmp_path / "journal"
    assert weirpool("collect", publisher, "numbers", "-d", f"{COUNT}", "-j", str(journal), "-q").code == 0
    return journal


def rewrite(journal: Path, other: Path, rows: pa.Table) -> None:
    """Write another journal of the same stream with other rows."""
    state = JournalReader(journal, "numbers").state
    with Journal(other).writer("numbers", request=Request("numbers", b"%d" % COUNT), fsync=False) as writer:
        (batch,) = rows.combine_chunks().to_batches()
        writer.append(batch, "numbers", state)


def split(journal: Path, other: Path) -> None:
    """Write another journal with the same rows in several segments."""
    reader = Journal(journal).reader("numbers")
    rows = pa.Table.from_batches(reader.read(0, COUNT)).select(ITEMS.names)
    options: dict[str, Any] = {"segment_bytes": 50_000, "fsync": False}
    with Journal(other).writer("numbers", request=Request("numbers", b"%d" % COUNT), **options) as writer:
        for batch in rows.to_batches(max_chunksize=1_000):
            writer.append(batch, "numbers", reader.state)


def test_a_journal_has_what_was_sent(weirpool: Weirpool, publisher: str, collected: Path) -> None:
    arguments = ("audit", publisher, "numbers", "--journal", str(collected))
    result = weirpool(*arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out == b"numbers: 10,000 of 10,000 items are in the journal as they were sent\n"
    (found,) = weirpool(*arguments, "--json").objects
    assert (found["sent"], found["compared"], found["waiting"], found["differing"]) == (COUNT, COUNT, 0, [])


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_stream_over_river_is_compared_as_it_was_sent(weirpool: Weirpool, tmp_path: Path, codec: str) -> None:
    service = AUDITED if codec == "json" else PACKED
    with serving(service, f"river+ws://127.0.0.1:0?codec={codec}") as (_, (url,)):
        options = ("test.objects", "-j", str(tmp_path))
        assert weirpool("collect", url, *options, "-d", '{"all": true}', "-q").code == 0
        result = weirpool("audit", url, *options)
    assert (result.code, result.err) == (0, "")
    assert result.out == b"test.objects: 10 of 10 items are in the journal as they were sent\n"


@pytest.mark.parametrize("text", ['{"rate": 200}', '{"rate":200}', ' {"rate" :200}'])
def test_streams_of_clients_with_the_same_text_are_told_apart(weirpool: Weirpool, tmp_path: Path, text: str) -> None:
    """River sends the request without white space, other protocols as it was written."""
    protocols = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river")
    urls = [f"{protocol}+tcp://127.0.0.1:0" for protocol in protocols] + ["river+tcp://127.0.0.1:0?codec=msgpack"]
    with serving(AUDITED, *urls) as (_, listening):
        for order in (listening, listening[::-1]):
            journals = {url: tmp_path / str(number) for number, url in enumerate(order)}
            for url, journal in journals.items():
                options = ("test.counted", "-j", str(journal), "--source", f"s{order is listening}")
                assert weirpool("collect", url, *options, "-d", text, "-q").code == 0, url
            for (url, journal), other in product(journals.items(), (None, listening[0])):
                options = ("test.counted", "-j", str(journal), "--source", f"s{order is listening}")
                result = weirpool("audit", other or url, *options)
                assert (result.code, result.err) == (0, ""), (url, result.out)
                assert b"items are in the journal as they were sent" in result.out


def test_rows_that_differ_are_found(weirpool: Weirpool, publisher: str, collected: Path, tmp_path: Path) -> None:
    reader = Journal(collected).reader("numbers")
    rows = pa.Table.from_batches(reader.read(0, COUNT)).select(ITEMS.names)
    arguments = ("audit", publisher, "numbers", "--journal")
    changed = pa.concat_tables([rows.slice(0, 5_000), rows.slice(0, 1), rows.slice(5_001)])
    rewrite(collected, tmp_path / "changed", changed)
    result = weirpool(*arguments, str(tmp_path / "changed"))
    assert result.code == 1
    assert result.out == b"numbers: positions 4,096 to 8,191 differ from what the publisher sent\n"
    rewrite(collected, tmp_path / "short", rows.slice(0, 9_000))
    result = weirpool(*arguments, str(tmp_path / "short"), "--wait", "0")
    assert result.code == 1
    assert result.out.endswith(b"1,000 more items are on their way\n")


def test_sealed_rows_are_compared_too(weirpool: Weirpool, publisher: str, collected: Path, tmp_path: Path) -> None:
    other = tmp_path / "sealed"
    split(collected, other)
    sealed = 0
    while (part := seal(other, "numbers", force=True)) is not None:
        sealed = part.end
    assert sealed > COUNT // 2
    (found,) = weirpool("audit", publisher, "numbers", "--journal", str(other), "--json").objects
    assert (found["compared"], found["differing"]) == (COUNT, [])


def test_audit_that_can_compare_nothing_is_not_passed(
    weirpool: Weirpool, publisher: str, collected: Path, tmp_path: Path
) -> None:
    other = tmp_path / "trimmed"
    split(collected, other)
    assert Journal(other).trim("numbers", COUNT - 1, retain_bytes=0) > 0
    result = weirpool("audit", publisher, "numbers", "--journal", str(other))
    assert result.code == 1
    assert b"10,000 cannot be compared" in result.out


def test_what_cannot_be_audited_is_told(weirpool: Weirpool, publisher: str, server: str, collected: Path) -> None:
    result = weirpool("audit", server, "numbers", "--journal", str(collected))
    assert result.code == 2
    assert "its service must be audited" in result.err
    assert_one_line(result)
    with serving(AUDITED, "rsocket+tcp://127.0.0.1:0") as (_, urls):
        result = weirpool("audit", urls[0], "numbers", "--journal", str(collected))
    assert result.code == 2
    assert "has not sent this stream since it was started" in result.err
    result = weirpool("audit", publisher, "numbers", "--journal", str(collected), "--source", "none")
    assert "there is no such log" in result.err


def test_credentials_of_the_set_up_open_a_guarded_publisher(weirpool: Weirpool, tmp_path: Path) -> None:
    with serving(GUARDED, "rsocket+tcp://127.0.0.1:0") as (_, urls):
        for arguments in (
            ("collect", urls[0], "numbers", "-j", str(tmp_path), "-q"),
            ("audit", urls[0], "numbers", "-j", str(tmp_path)),
        ):
            refused = weirpool(*arguments, "--setup-auth", "bearer:other")
            assert (arguments[0], refused.code) != (arguments[0], 0)
            assert "no valid token" in refused.err
            assert weirpool(*arguments, "--setup-auth", "bearer:t0ken").code == 0
