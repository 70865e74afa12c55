"""What goes into bundles; that it comes back on another machine is shown in test_group.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, segment, uuid, write
from tests.replica.groups import MemoryStore, sequence
from weirpool.errors import JournalCorrupt, JournalError, JournalMismatch
from weirpool.journal import JournalWriter
from weirpool.journal.layout import DURABLE, IDENTITY, log_folder
from weirpool.journal.sealed import SealedState, write_sealed
from weirpool.replica.bundler import Bundler
from weirpool.replica.logs import Logs
from weirpool.replica.ownership import take
from weirpool.replica.vault import Vault, new_key

SECONDS = 30


class Owner:
    """The owner of a group, in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.bundler = Bundler(take(sequence(self.store)), interval=0.0, heartbeat=1_000.0)
        self.vault = Vault(new_key(), "edge")
        self.logs = Logs(self.bundler, self.vault, {})


@pytest.fixture
def owner() -> Iterator[Owner]:
    found = Owner()
    yield found
    found.bundler.close()


def test_every_append_is_in_a_bundle_before_it_counts(owner: Owner, tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, replica=owner.logs) as writer:
        for count in (3, 1, 2):
            append(writer, count)
            (part,) = owner.logs.parts()
            assert (part.uuid, part.end, part.state) == (writer.uuid, writer.position, b"at %d" % writer.position)
        writer.append_gap("away", b"state")
        writer.renew()
        assert owner.logs.parts()[0].gap == "away"
        append(writer, 1)
        assert owner.logs.parts()[0].gap == ""
    owner.bundler.close()
    found = take(sequence(owner.store)).logs[SOURCE]
    assert found.identity == (log_folder(tmp_path, SOURCE) / IDENTITY).read_bytes()
    assert (found.end, found.state) == (7, b"at 7")


def test_what_is_not_in_a_bundle_is_removed_again(owner: Owner, tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=300, replica=owner.logs) as writer:
        append(writer, 2)
        before = segment(writer.folder).read_bytes()
        owner.bundler.close()
        for count in (1, 50):
            with pytest.raises(JournalError, match="closing"):
                append(writer, count)
        assert writer.position == 2
        assert [path.read_bytes() for path in writer.folder.glob("*.arrows")] == [before]


def test_secrets_are_encrypted_and_do_not_change_the_log(owner: Owner, tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, replica=owner.logs) as writer:
        append(writer, 2)
        owner.logs.keep(SOURCE, b"the secret").result(SECONDS)
        owner.logs.keep("new", b"another").result(SECONDS)
        append(writer, 1)
    owner.bundler.close()
    found = take(sequence(owner.store)).logs
    assert (found[SOURCE].end, found[SOURCE].state, found["new"].uuid) == (3, b"at 3", "")
    for source, secret in ((SOURCE, b"the secret"), ("new", b"another")):
        sealed = found[source].secret
        assert sealed is not None and owner.vault.open(source, sealed) == secret


def test_rows_that_are_sealed_here_only_are_refused(owner: Owner, tmp_path: Path) -> None:
    folder = write(tmp_path, 5, 5, segment_bytes=1)
    write_sealed(folder, SealedState(uuid(folder), 0, 5, 100, stored=False))
    with pytest.raises(JournalMismatch, match="sealed on this machine only"):
        JournalWriter.open(tmp_path, SOURCE, replica=owner.logs)
    write_sealed(folder, SealedState(uuid(folder), 0, 5, 100, stored=True))
    JournalWriter.open(tmp_path, SOURCE, replica=owner.logs).close()
    assert owner.logs.parts()[0].end == 10


def test_damaged_rows_are_not_adopted(owner: Owner, tmp_path: Path) -> None:
    folder = write(tmp_path, 5, 5, segment_bytes=1)
    first = segment(folder)
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    with pytest.raises(JournalCorrupt):
        first.write_bytes(content[:-10])
        JournalWriter.open(tmp_path, SOURCE, replica=owner.logs)


def test_a_log_that_differs_from_the_group_is_refused(owner: Owner, tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path / "one", SOURCE, replica=owner.logs) as writer:
        append(writer, 2)
    with pytest.raises(JournalMismatch, match="move the folder away"):
        JournalWriter.open(tmp_path / "two", SOURCE, replica=owner.logs)
    (writer.folder / DURABLE).unlink()
    JournalWriter.open(tmp_path / "one", SOURCE, replica=owner.logs).close()
