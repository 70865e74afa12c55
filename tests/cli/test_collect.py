from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec import msgpack

from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, command, serving
from weirpool.cli.collect import size_of
from weirpool.errors import LocalError
from weirpool.journal import Journal
from weirpool.journal.writer import JournalWriter

URL = "rsocket+tcp://127.0.0.1:0"
ENDLESS = """\
import asyncio
from weirpool import Payload, Service

service = Service()


@service.stream("endless")
async def endless(request: Payload):
    yield b"first"
    print("begun", flush=True)
    await asyncio.get_running_loop().create_future()
"""


def rows(journal: Path, source: str) -> list[bytes]:
    reader = Journal(journal).reader(source)
    return [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]


def test_stream_is_collected_once(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    arguments = ("collect", server, "count", "-d", "1000", "--journal", str(tmp_path), "--quiet")
    result = weirpool(*arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out == b"collected 1,000 items; the journal ends at 1,000\n"
    assert rows(tmp_path, "count") == [b"%d" % number for number in range(1000)]
    # The stream is complete, so there is nothing to do without --again.
    assert weirpool(*arguments).out == b"the stream is already complete, at 1,000; use --again to collect it again\n"
    assert weirpool(*arguments, "--again").out == b"collected 1,000 items; the journal ends at 2,000\n"


def test_credit_metadata_and_an_end_for_programs(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    result = weirpool("collect", server, "count", "-d", "9", "-m", "m", "--credit", "2", "-j", str(tmp_path), "--json")
    assert result.code == 0
    assert json.loads(result.out) == {"items": 9, "bytes": 9, "gaps": 0, "position": 9, "complete": True}
    assert weirpool("collect", server, "count", "-j", str(tmp_path), "--credit", "0").code == 2


def test_river_request_is_written_as_json_with_any_codec(weirpool: Weirpool, tmp_path: Path) -> None:
    with serving(f"{INTEROP}:service", "river+tcp://127.0.0.1:0?codec=msgpack") as (_, urls):
        result = weirpool("collect", urls[0], "interop.count", "-d", '{"n":3}', "-j", str(tmp_path), "-q")
    assert (result.code, result.err) == (0, "")
    assert rows(tmp_path, "interop.count") == [msgpack.encode({"n": number}) for number in range(3)]


def test_source_names_the_log(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    result = weirpool("collect", server, "count", "-d", "2", "-j", str(tmp_path), "--source", "mine", "-q")
    assert result.code == 0
    assert Journal(tmp_path).sources() == ["mine"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_signal_stops_collecting_in_order(number: signal.Signals, code: int, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    with serving(f"{program}:service", "rsocket+tcp://127.0.0.1:0") as (server, urls):
        arguments = command("collect", urls[0], "endless", "-j", str(tmp_path / "journal"))
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert server.stdout is not None
            assert server.stdout.readline() == "begun\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert "continues from here" in err
    assert "Traceback" not in err
    assert out.startswith("collected ")


def test_failing_publisher_is_exit_code_1(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    result = weirpool("collect", server, "nowhere", "-j", str(tmp_path), "-q")
    assert result.code == 1
    assert "nowhere" in result.err
    # A mistyped route creates no log.
    assert list(tmp_path.glob("source=*")) == []


def test_another_request_is_exit_code_2(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    # THREATS 99
    place = ("--journal", str(tmp_path), "--source", "s", "-q")
    assert weirpool("collect", server, "count", "-d", "5", *place).code == 0
    for other in (("count", "-d", "6"), ("echo", "-d", "5"), ("count", "-d", "5", "-m", "x"), ("count", "--again")):
        result = weirpool("collect", server, *other, *place)
        assert result.code == 2
        assert_one_line(result)
        assert "choose another source name" in result.err
    assert rows(tmp_path, "s") == [b"%d" % number for number in range(5)]


def test_credentials_and_traces_do_not_make_another_request(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    arguments = ("collect", server, "count", "-d", "5", "-m", "m", "-j", str(tmp_path), "-q", "--again")
    for changing in ((), ("--auth", "bearer:one"), ("--auth", "bearer:two"), ("--trace", "sampled")):
        result = weirpool(*arguments, *changing)
        assert (changing, result.code) == (changing, 0)
    assert len(rows(tmp_path, "count")) == 20
    assert weirpool(*arguments, "--entry", "text/plain=x").code == 2


def test_failed_connection_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    result = weirpool("collect", f"rsocket+unix://{tmp_path}/nobody", "count", "-j", str(tmp_path / "journal"))
    assert result.code == 3


def test_journal_of_another_collector_is_exit_code_1(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "count", fsync=False):
        result = weirpool("collect", server, "count", "-d", "1", "-j", str(tmp_path))
    assert result.code == 1
    assert_one_line(result)


def test_uri_is_not_the_folder_of_a_journal(weirpool: Weirpool) -> None:
    result = weirpool("collect", "rsocket+tcp://127.0.0.1:1", "items", "--journal", "s3://bucket/quotes")
    assert result.code == 2
    assert "a journal is written to a disk of this machine" in result.err
    assert_one_line(result)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (
            ("--config", "feeds.toml", "--budget", "1GiB", "-d", "x", "--json"),
            "with --config: --budget, --data, --json",
        ),
        (("--listen", URL, "--receive", "a", "-j", "x", "--serve", URL, "--again"), "with --listen: --again, --serve"),
        ((URL, "a", "-j", "x", "--workers", "2", "--check"), "without --config and --listen: --check, --workers"),
    ],
)
def test_options_that_a_form_would_ignore_are_refused(
    weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], refused: str
) -> None:
    # A variable is often set for several commands.
    monkeypatch.setenv("WEIRPOOL_SETUP_AUTH", "bearer:t0ken")
    result = weirpool("collect", *arguments)
    assert (result.code, result.err) == (2, f"weirpool: not used {refused}\n")


def test_wrong_budget_is_exit_code_2(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    result = weirpool("collect", server, "count", "-j", str(tmp_path), "--budget", "lots")
    assert result.code == 2
    assert_one_line(result)


def test_size_is_in_bytes_or_an_error() -> None:
    assert (size_of("1000000"), size_of("256MiB")) == (10**6, 2**28)
    with pytest.raises(LocalError, match="'lots' is not valid; it must be a size in bytes"):
        size_of("lots")
