from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import msgspec
import pytest

import weirpool
from tests.feeds.helpers import feeds
from tests.journal.logs import write
from weirpool import Bearer, Metadata, Payload
from weirpool.errors import LocalError, Rejected, SetupRejected
from weirpool.feeds.board import Board
from weirpool.feeds.file import FeedsFile
from weirpool.feeds.serve import Serve
from weirpool.feeds.serving import check_serving, served_folders, serving
from weirpool.feeds.values import Reference

LOCAL = Serve(url="rsocket+tcp://127.0.0.1:0")


class Still:
    """A runner that runs nothing."""

    def __init__(self) -> None:
        self.standing_by = ""
        self.applied: list[FeedsFile] = []
        self.published = 0

    async def apply(self, file: FeedsFile) -> None:
        self.applied.append(file)

    def publish(self) -> None:
        self.published += 1

    async def stop(self) -> list[str]:
        return ["late"]


def names(board: Board) -> list[str]:
    return [served.name for served in board.document().served]


async def test_journals_follow_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = iter(range(0, 1_000, 10)).__next__
    still, board = Still(), Board(clock=lambda: float(clock()))
    first = feeds(tmp_path, "a", 'b journal = "other"')
    async with serving(still, first, LOCAL, board) as runner:
        await runner.apply(first)
        runner.publish()
        [url] = runner.urls
        [one, other] = board.document().served
        assert (one.name, one.journal, one.connections) == ("journal", str(tmp_path / "journal"), 0)
        assert (other.name, other.url) == ("other", f"{url}?journal=other")
        # A feed whose table is not valid goes on, and so does its journal.
        await runner.apply(feeds(tmp_path, "a", 'b journal = "other"; rotue = 1', 'c journal = "third"'))
        runner.publish()
        assert names(board) == ["journal", "other", "third"]
        # Names that are not clear change nothing.
        await runner.apply(feeds(tmp_path, 'c journal = "third"', 'd journal = "x/third"'))
        assert "the same journals are served as before" in caplog.text
        runner.publish()
        assert names(board) == ["journal", "other", "third"]
        await runner.apply(feeds(tmp_path, 'c journal = "third"'))
        runner.publish()
        assert names(board) == ["third"]
        assert await runner.stop() == ["late"]
    assert (len(still.applied), still.published) == (4, 4)


async def test_names_are_applied_at_once_and_the_rest_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    first = feeds(tmp_path, "a")
    async with serving(Still(), first, LOCAL, board) as runner:
        renamed = Serve(url=LOCAL.url, journals={"market": str(tmp_path / "journal")})
        await runner.apply(_with(first, renamed))
        runner.publish()
        assert names(board) == ["market"] and not caplog.records
        with caplog.at_level(logging.WARNING):
            await runner.apply(_with(first, Serve(url="rsocket+tcp://127.0.0.1:1", journals=renamed.journals)))
        assert "all of it but journals is applied at the next start" in caplog.text


def _with(file: FeedsFile, serve: Serve) -> FeedsFile:
    return dataclasses.replace(file, serve=serve)


async def test_a_token_is_read_for_each_reader(tmp_path: Path) -> None:
    write(tmp_path / "journal", 10)
    file = feeds(tmp_path, "a")
    serve = msgspec.structs.replace(LOCAL, token=Reference(file="token"))
    with pytest.raises(LocalError, match="token"):
        check_serving(file, serve)
    for token in ("one", "two"):
        (tmp_path / "token").write_text(f"{token}\n")
        if token == "one":
            runner = serving(Still(), file, serve, Board())
            [url] = (await runner.__aenter__()).urls
        setup = Payload(b"", Metadata(auth=Bearer(token)).encode())
        async with weirpool.connect(url, setup=setup) as peer:
            assert (await peer.call("weirpool.journal.list")).data
    await runner.__aexit__(None, None, None)


@pytest.mark.parametrize("named", ["file", "environment"])
async def test_operators_have_a_token_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    write(tmp_path / "journal", 10)
    serve = msgspec.structs.replace(LOCAL, token="reader", operator_token="0perator" if named == "file" else None)
    if named == "environment":
        monkeypatch.setenv("WEIRPOOL_SERVE_OPERATOR_TOKEN", "0perator")
    request = b'{"source": "s", "cursor": "export", "position": 5}'
    async with serving(Still(), feeds(tmp_path, "a"), serve, Board()) as runner:
        for token in ("reader", "0perator"):
            setup = Payload(b"", Metadata(auth=Bearer(token)).encode())
            async with weirpool.connect(runner.urls[0], setup=setup) as peer:
                assert (await peer.call("weirpool.journal.list")).data
                if token == "reader":
                    with pytest.raises(Rejected, match="seek is not allowed"):
                        await peer.call("weirpool.journal.seek", request)
                else:
                    assert (await peer.call("weirpool.journal.seek", request)).data == b"5"
    with pytest.raises(LocalError, match="the token that clients must show is empty"):
        check_serving(feeds(tmp_path, "a"), msgspec.structs.replace(LOCAL, operator_token=""))


def test_journals_are_named(tmp_path: Path) -> None:
    file = feeds(tmp_path, "a", 'b journal = "x/journal"', 'c journal = "x/../journal"')
    with pytest.raises(LocalError, match=r"feeds.toml: serve.journals: .* would both be served as 'journal'"):
        served_folders(file, LOCAL)
    given = Serve(url=LOCAL.url, journals={"x": str(tmp_path / "x" / "journal")})
    assert check_serving(file, given) == {"x": str(tmp_path / "x" / "journal"), "journal": str(tmp_path / "journal")}


async def test_readers_are_turned_away_while_another_collector_continues_the_logs(tmp_path: Path) -> None:
    write(tmp_path / "journal", 10)
    still = Still()
    still.standing_by = "another one collects"
    async with serving(still, feeds(tmp_path, "a"), LOCAL, Board()) as runner:
        [url] = runner.urls
        for reason in ("another one collects", "", "it was overtaken"):
            still.standing_by = reason
            runner.publish()
            assert runner.standing_by == reason
            if reason:
                with pytest.raises(SetupRejected, match=f"this collector stands by: {reason}"):
                    await _listed(url)
            else:
                assert b"10" in await _listed(url)


async def _listed(url: str) -> bytes:
    async with weirpool.connect(url) as peer:
        return (await peer.call("weirpool.journal.list")).data
