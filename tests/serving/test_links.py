"""The connections of a process to collectors."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, write
from tests.sync.served import run_program
from weirpool import Service
from weirpool.errors import JournalError, JournalMissing, SessionClosed
from weirpool.journal import Journal
from weirpool.serving.journals import ServedJournals
from weirpool.serving.links import Links, close_links, links

from .served import Served, served_by, serving, until


def test_a_process_has_one_connection_for_each_collector(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        peers = [links().run(links().peer(served.url)) for _ in range(3)]
        assert peers[0] is peers[1] is peers[2]
        # After an answer, the server knows the connection, too.
        assert Journal(served.url).reader(SOURCE).end == 10
        served.cut()
        assert Journal(served.url).reader(SOURCE).end == 10
        assert links().run(links().peer(served.url)) is not peers[0]


def test_a_collector_that_is_not_there_is_named_after_some_tries(tmp_path: Path) -> None:
    mine = Links()

    async def nothing(peer: object) -> None:
        raise AssertionError

    with serving(tmp_path) as served:
        gone = served.url
    try:
        with pytest.raises(JournalError, match=r"cannot be reached .*--serve"):
            mine.run(mine.ask(gone, nothing, 0.2))
    finally:
        mine.close()


def test_connections_are_closed_and_made_again(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        reader = Journal(served.url).reader(SOURCE)
        rows = reader.read(0, 10)
        assert next(rows).num_rows
        # It follows the collector, too, and reads a range.
        until(lambda: len(served.server._drivers) == 1)
        close_links()
        until(lambda: not served.server._drivers)
        assert "weirpool-links" not in {thread.name for thread in threading.enumerate()}
        rows.close()
        assert sum(batch.num_rows for batch in reader.read(0, 10)) == 10
        assert Journal(served.url).reader(SOURCE).end == 10


def test_a_range_that_is_read_goes_on_with_new_connections(tmp_path: Path) -> None:
    write(tmp_path, *[10_000] * 50)
    with serving(tmp_path) as served:
        rows = Journal(served.url).reader(SOURCE).read(0, 500_000)
        taken = next(rows).num_rows
        assert taken < 500_000
        close_links()
        assert taken + sum(batch.num_rows for batch in rows) == 500_000


def test_closed_connections_answer_nobody() -> None:
    mine = Links()
    begun = threading.Event()

    async def forever() -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    async def closing_slowly() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            # A question that arrives now must not wait for ever.
            with pytest.raises(SessionClosed, match="were closed"):
                mine.submit(forever())

    slow, waiting = mine.submit(closing_slowly()), mine.submit(forever())
    assert begun.wait(10)
    mine.close()
    mine.close()
    for future in (slow, waiting):
        with pytest.raises(SessionClosed, match="were closed"):
            mine.wait(future)
    with pytest.raises(JournalError, match="were closed"):
        mine.run(forever())
    mine.post(forever())


def test_what_runs_while_connections_are_closed_makes_no_new_ones(tmp_path: Path) -> None:
    write(tmp_path, 10)
    seen: list[Links] = []

    async def asked_at_the_end() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append(links())

    with serving(tmp_path) as served:
        closed = links()
        closed.submit(asked_at_the_end())
        assert Journal(served.url).reader(SOURCE).end == 10
        close_links()
        assert seen == [closed]
        assert Journal(served.url).reader(SOURCE).end == 10
        assert links() is not closed


def test_what_follows_a_collector_that_has_gone_ends(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        assert Journal(served.url).reader(SOURCE).end == 10
    close_links()
    assert "weirpool-links" not in {thread.name for thread in threading.enumerate()}


def test_a_forked_process_has_connections_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        assert Journal(served.url).reader(SOURCE).end == 10
        child = os.fork()
        if not child:
            rows = sum(batch.num_rows for batch in Journal(served.url).reader(SOURCE).read(0, 10))
            os._exit(rows)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10


def test_a_forked_process_that_ends_leaves_connections_to_its_parent(tmp_path: Path) -> None:
    write(tmp_path, 10)
    program = """
        from weirpool.journal import Journal
        from weirpool.serving.links import close_links, links
        url = {url!r}
        reader = Journal(url).reader("s")
        peer = links().run(links().peer(url))
        child = os.fork()
        if not child:
            close_links()
            sys.exit()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print(sum(batch.num_rows for batch in reader.read(0, 10)))
        print(links().run(links().peer(url)) is peer, peer.closed)
    """
    with serving(tmp_path) as served:
        result = run_program(program.format(url=served.url))
    assert (result.stdout, result.stderr) == ("10\nTrue False\n", "")


def test_a_journal_that_is_not_served_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "a", 10)
    write(tmp_path / "b", 20)
    journals = ServedJournals({name: str(tmp_path / name) for name in "ab"})
    options = {"acceptor": lambda setup: journals.admit(setup.payload.data), "on_connection": journals.connected}
    with served_by(Service(), **options) as url:
        assert Journal(f"{url}?journal=b").reader(SOURCE).end == 20
        for wrong in (f"{url}?journal=c", url):
            with pytest.raises(JournalMissing, match="those that are: a, b"):
                Journal(wrong).sources()


def test_collectors_that_stand_in_for_each_other_are_tried_in_turn(tmp_path: Path) -> None:
    pair = []
    for name in "ab":
        write(tmp_path / name, 10)
        journals = ServedJournals({name: str(tmp_path / name)})
        options = {"acceptor": lambda setup, at=journals: at.admit(setup.payload.data)}
        served = Served(Service(), "rsocket+tcp://127.0.0.1:0", **options, on_connection=journals.connected)
        served.start()
        pair.append((name, journals, served))
    try:
        url = " | ".join(served.url for _, _, served in pair)
        for owner in "aba":
            for name, journals, served in pair:
                served.call(journals.stand_by, "" if name == owner else "another one collects")
            assert Journal(url).reader(SOURCE).end == 10
            until(lambda at=owner: all(bool(j.connections(name)) == (name == at) for name, j, _ in pair))
    finally:
        for _, _, served in pair:
            served.stop()
