"""Several journals behind one address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import weirpool
from tests.journal.logs import write
from weirpool import LocalError, Payload, Peer, SetupRejected, WeirpoolError
from weirpool.serving.door import journal_server
from weirpool.serving.journals import ServedJournals, journal_names


@asynccontextmanager
async def client(url: str, name: str | None) -> AsyncIterator[Peer]:
    setup = Payload(b"" if name is None else f'{{"journal": "{name}"}}'.encode())
    async with weirpool.connect(url, setup=setup) as peer:
        yield peer


async def logs(peer: Peer) -> bytes:
    return (await peer.call("weirpool.journal.list")).data


async def reached(url: str, name: str | None) -> bytes:
    async with client(url, name) as peer:
        return await logs(peer)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Three journals whose logs have different lengths."""
    for rows, name in ((11, "a"), (22, "b"), (33, "c")):
        write(tmp_path / name, rows)
    return {name: str(tmp_path / name) for name in "abc"}


async def test_a_client_gets_the_journal_that_it_names(folders: dict[str, str], tmp_path: Path) -> None:
    url = f"rsocket+memory://{tmp_path.name}"
    async with journal_server(ServedJournals(folders), url):
        for name, rows in (("a", b"11"), ("b", b"22"), ("c", b"33")):
            assert rows in await reached(url, name)
        for name, why in (("d", "'d' is not served here"), (None, "names no journal"), ("", "names no journal")):
            with pytest.raises(SetupRejected, match=f"JournalMissing: .*{why}; those that are: a, b, c"):
                await reached(url, name)
        with pytest.raises(SetupRejected, match="the set-up is not one of a reader"):
            async with weirpool.connect(url, setup=b"\xff") as peer:
                await logs(peer)


async def test_only_clients_of_a_journal_that_is_gone_are_disconnected(folders: dict[str, str], tmp_path: Path) -> None:
    url = f"rsocket+memory://{tmp_path.name}"
    a, b, c = ({name: folders[name]} for name in "abc")
    journals = ServedJournals(a | b)
    async with journal_server(journals, url), client(url, "a") as staying, client(url, "b") as leaving:
        assert b"11" in await logs(staying) and b"22" in await logs(leaving)
        assert (journals.connections("a"), journals.connections("b")) == (1, 1)
        following = asyncio.ensure_future(_followed(leaving))
        await journals.replace(a | c)
        with pytest.raises(WeirpoolError):
            await following
        assert b"11" in await logs(staying)
        assert b"33" in await reached(url, "c")
        with pytest.raises(SetupRejected, match="those that are: a, c"):
            await reached(url, "b")
        # The same name, and another folder.
        await journals.replace({"a": folders["b"]})
        assert b"22" in await reached(url, "a")
        with pytest.raises(WeirpoolError):
            await logs(staying)


async def _followed(peer: Peer) -> None:
    async with peer.stream("weirpool.journal.follow") as changes:
        async for _ in changes:
            pass


async def test_the_only_journal_needs_no_name_as_long_as_it_is_served(
    folders: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"rsocket+memory://{tmp_path.name}"
    a, b = ({name: folders[name]} for name in "ab")
    journals = ServedJournals(a)
    async with journal_server(journals, url):
        assert b"11" in await reached(url, None)
        with caplog.at_level(logging.WARNING):
            await journals.replace(a | b)
        assert "readers that name no journal read 'a' until the next start" in caplog.text
        assert b"11" in await reached(url, None)
        # Never another one.
        await journals.replace(b)
        with pytest.raises(SetupRejected, match="'a' is not served here"):
            await reached(url, None)


def test_journals_are_named_after_their_folders_unless_they_are_given_names() -> None:
    assert journal_names(["/x/a", "/x/../x/a", "/y/b"]) == {"a": "/x/a", "b": "/y/b"}
    assert journal_names(["/x/a", "/y/a"], {"other": "/y/a"}) == {"other": "/y/a", "a": "/x/a"}


@pytest.mark.parametrize(
    ("folders", "given", "why"),
    [
        (["/x/a", "/y/a"], {}, "/x/a and /y/a would both be served as 'a'"),
        (["/x/a", "/x/b"], {"a": "/x/b"}, "/x/b and /x/a would both be served as 'a'"),
        (["/x/a b"], {}, "the journal /x/a b: 'a b' cannot name a journal.*give it a name"),
        (["/x/a"], {"b": "/x/b"}, "'b' is the name of /x/b, which is not the journal of a feed"),
        (["/x/a"], {"b": "/x/a", "c": "/x/a"}, "/x/a has two names, 'b' and 'c'"),
        (["/x/a"], {"a b": "/x/a"}, "'a b' cannot name a journal"),
    ],
)
def test_names_that_are_not_clear_are_refused(folders: list[str], given: dict[str, str], why: str) -> None:
    with pytest.raises(LocalError, match=why):
        journal_names(folders, given)


def test_a_journal_elsewhere_is_not_served() -> None:
    with pytest.raises(LocalError, match="not a folder of this machine"):
        ServedJournals({"a": "s3://bucket/a"})


async def test_a_collector_that_stands_by_has_no_clients(folders: dict[str, str], tmp_path: Path) -> None:
    url = f"rsocket+memory://{tmp_path.name}"
    journals = ServedJournals(folders)
    async with journal_server(journals, url), client(url, "a") as leaving:
        following = asyncio.ensure_future(_followed(leaving))
        await asyncio.sleep(0)
        journals.stand_by("another one collects")
        with pytest.raises(WeirpoolError):
            await following
        with pytest.raises(SetupRejected, match="this collector stands by: another one collects"):
            await reached(url, "a")
        assert journals.connections("a") == 0
        journals.stand_by("")
        assert b"11" in await reached(url, "a")
