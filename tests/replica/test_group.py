"""Groups on a store in a folder: collectors that follow each other, on machines of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append
from weirpool.archive.options import SealOptions
from weirpool.archive.sealing import seal
from weirpool.errors import JournalError, JournalLocked, JournalMismatch, StoreError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal import secret as secrets
from weirpool.journal.layout import log_folder
from weirpool.journal.sealed import safe_position
from weirpool.journal.secret import Secret
from weirpool.replica import group as groups
from weirpool.replica.bundle import Part
from weirpool.replica.bundler import Bundler
from weirpool.replica.group import Group, Membership
from weirpool.replica.ownership import Superseded, Update
from weirpool.replica.restore import BOOT
from weirpool.replica.vault import new_key

KEY = new_key()
SECONDS = 30
SECRET = Secret(owner="digest", session=5, token=b"token")


class Machine:
    """A machine with a journal of its own."""

    def __init__(self, path: Path, name: str, key: str = KEY) -> None:
        self.journal = path / name
        self.store = str(path / "store")
        self.member = Membership(
            name="edge", store=self.store, key=key, journal=self.journal, patience=1_000.0, interval=0.0
        )
        self.lost = threading.Event()

    def group(self) -> Group:
        return Group(self.member, lambda error: self.lost.set())

    def writer(self, group: Group, source: str = SOURCE, segment_bytes: int = 1 << 26) -> JournalWriter:
        return JournalWriter.open(self.journal, source, replica=group.logs, segment_bytes=segment_bytes)

    def seal(self) -> None:
        while seal(self.journal, SOURCE, SealOptions(store=self.store), force=True) is not None:
            pass

    def rows(self, source: str = SOURCE) -> list[int]:
        """Return the numbers in all rows, also the sealed ones."""
        reader = Journal(self.journal).reader(source)
        return [int(data) for batch in reader.read(reader.first, reader.end) for data in batch["data"].to_pylist()]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    yield Machine(tmp_path, "one"), Machine(tmp_path, "two")


def test_a_log_goes_on_at_another_machine(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    lost = one.group()
    with one.writer(lost) as writer:
        append(writer, 3, 4, 100)
        taken = two.group()
        with pytest.raises(Superseded):
            append(writer, 5)
        assert writer.position == 107 and one.rows() == list(range(107))
    assert one.lost.wait(SECONDS) and lost.is_lost
    with two.writer(taken) as writer:
        assert (writer.position, writer.state) == (107, b"at 107")
        append(writer, 5)
    assert two.rows() == list(range(112))
    taken.close()
    lost.close()
    again = one.group()
    assert one.rows() == list(range(112))
    again.close()


@pytest.mark.parametrize("segment_bytes", [1, 2_000, 1 << 26])
def test_segments_begin_where_they_may(machines: tuple[Machine, Machine], segment_bytes: int) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group, segment_bytes=segment_bytes) as writer:
        append(writer, *[3] * 20)
        writer.append_gap("a gap", b"after the gap")
        append(writer, 2)
    group.close()
    group = two.group()
    assert two.rows() == one.rows() == list(range(62))
    assert [gap.position for gap in Journal(two.journal).reader(SOURCE).gaps()] == [60]
    group.close()


def test_sealed_rows_need_no_bundle(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group, segment_bytes=1) as writer:
        append(writer, 10, 10, 10)
        one.seal()
        for _ in range(3):
            group.tend(0.0)
            append(writer, 1)
    assert len(list(Path(one.store, "_replica").rglob("*.bundle"))) < 9
    group.close()
    group = two.group()
    reader = Journal(two.journal).reader(SOURCE)
    assert reader.first == 0 and two.rows() == list(range(33))
    with two.writer(group) as writer:
        append(writer, 1)
    two.seal()
    assert two.rows() == list(range(34))
    group.close()


def test_a_log_that_is_sealed_to_its_end_is_not_looked_at_again(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = machines
    looks: list[Path] = []

    def look(folder: Path) -> int:
        looks.append(folder)
        return safe_position(folder)

    monkeypatch.setattr(groups, "safe_position", look)
    group = one.group()
    with one.writer(group, segment_bytes=1) as writer:
        append(writer, 10)
    group.tend(0.0)
    one.seal()
    for _ in range(3):
        group.tend(0.0)
    assert len(looks) == 2
    with one.writer(group) as writer:
        append(writer, 1)
    for _ in range(2):
        group.tend(0.0)
    assert len(looks) == 4
    group.close()


def test_a_log_that_is_sealed_to_its_end_keeps_its_state_and_its_gap(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group, segment_bytes=1) as writer:
        append(writer, 10)
    # Nobody writes it: the group completes the segment, so that it can be sealed.
    group.tend(0.0)
    one.seal()
    with one.writer(group) as writer:
        writer.append_gap("the publisher was away", b"behind the gap")
    group.tend(0.0)
    for source in "xyz":
        with one.writer(group, source) as writer:
            append(writer, 1)
    group.close()
    for machine in (two, one):
        group = machine.group()
        with machine.writer(group) as writer:
            assert (writer.position, writer.state) == (10, b"behind the gap")
        gaps = Journal(machine.journal).reader(SOURCE).gaps()
        assert [(gap.position, gap.reason) for gap in gaps] == [(10, "the publisher was away")]
        assert machine.rows() == list(range(10))
        group.close()


def test_secrets_follow(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    group.logs.keep("new", secrets.encode(SECRET)).result(SECONDS)
    with one.writer(group) as writer:
        append(writer, 1)
    group.logs.keep(SOURCE, secrets.encode(SECRET)).result(SECONDS)
    assert not any(b"token" in path.read_bytes() for path in Path(one.store).rglob("*.bundle"))
    group.close()
    group = two.group()
    assert secrets.load(log_folder(two.journal, "new")) == secrets.load(log_folder(two.journal, SOURCE)) == SECRET
    group.logs.keep("new", None).result(SECONDS)
    group.close()
    log_folder(one.journal, "new").mkdir()
    secrets.save(log_folder(one.journal, "new"), SECRET)
    group = one.group()
    assert secrets.load(log_folder(one.journal, "new")) is None
    group.close()


def test_a_collector_with_another_key_does_not_take_the_group_over(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, _ = machines
    group = one.group()
    with pytest.raises(JournalError, match="another key"):
        Machine(tmp_path, "two", new_key()).group()
    group.logs.confirm().result(SECONDS)
    group.close()


def test_rows_from_before_the_group_are_kept_too(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    with JournalWriter.open(one.journal, SOURCE, segment_bytes=500) as writer:
        append(writer, *[7] * 10)
        writer.append_gap("a gap at the end", b"state")
    group = one.group()
    with one.writer(group) as writer:
        append(writer, 2)
    group.close()
    group = two.group()
    assert two.rows() == list(range(72))
    assert [gap.position for gap in Journal(two.journal).reader(SOURCE).gaps()] == [70]
    group.close()


def test_a_log_that_was_never_shared_gives_way(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    lost = one.group()
    taken = two.group()
    with one.writer(lost) as writer, pytest.raises(Superseded):
        append(writer, 1)
    with two.writer(taken) as writer:
        append(writer, 2)
    taken.close()
    lost.close()
    group = one.group()
    assert one.rows() == [0, 1]
    group.close()


def test_another_log_of_this_name_is_refused(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group) as writer:
        append(writer, 2)
    group.close()
    with JournalWriter.open(two.journal, SOURCE) as writer:
        append(writer, 3)
    with pytest.raises(JournalMismatch, match="move it away"):
        two.group()
    # It has given the group up again.
    group = one.group()
    group.close()


def test_a_log_in_use_is_not_restored(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group) as writer:
        append(writer, 2)
    group.close()
    with JournalWriter.open(two.journal, SOURCE), pytest.raises(JournalLocked):
        two.group()


def test_a_log_that_cannot_be_tended_does_not_affect_the_others(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = machines
    group = one.group()
    for source in "ab":
        with one.writer(group, source) as writer:
            append(writer, 1)
    complete = Group._complete

    def failing(group: Group, folder: Path, part: Part, *rest: float) -> None:
        if part.source == "a":
            raise FileNotFoundError("the segment was sealed meanwhile")
        complete(group, folder, part, *rest)

    monkeypatch.setattr(Group, "_complete", failing)
    group.tend(0.0)
    assert "sealed meanwhile" in caplog.text
    assert len(list(log_folder(one.journal, "b").glob("*.arrows"))) == 2
    group.close()


def test_rows_from_before_the_group_survive_an_interruption(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    with JournalWriter.open(one.journal, SOURCE, segment_bytes=500) as writer:
        append(writer, *[7] * 10)
    group = one.group()
    submit = Bundler.submit

    def stopping(bundler: Bundler, update: Update) -> Future[None]:
        if update.part.first > 20:
            bundler.close()
        return submit(bundler, update)

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="closing"):
        patch.setattr(Bundler, "submit", stopping)
        one.writer(group)
    group.close()
    group = one.group()
    assert one.rows() == list(range(70))
    with one.writer(group) as writer:
        append(writer, 2)
    group.close()
    group = two.group()
    assert two.rows() == list(range(72))
    group.close()


def test_rows_that_the_group_does_not_have_are_not_removed(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    group = one.group()
    with one.writer(group) as writer:
        append(writer, 3)
    group.close()
    with JournalWriter.open(one.journal, SOURCE) as writer:
        append(writer, 3)
    # As after a restart of the machine.
    (log_folder(one.journal, SOURCE) / BOOT).unlink(missing_ok=True)
    with pytest.raises(JournalMismatch, match="only up to 3"):
        one.group()
    assert one.rows() == list(range(6))


def test_a_gap_after_sealed_rows_is_kept_when_rows_follow(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    with one.writer(group, segment_bytes=1) as writer:
        append(writer, 10)
    group.tend(0.0)
    one.seal()
    with one.writer(group) as writer:
        writer.append_gap("the publisher was away", b"behind the gap")
    for source in "xyz":
        # Bundles that let the gap's one be deleted.
        group.tend(1_000.0)
        with one.writer(group, source) as writer:
            append(writer, 1)
    with one.writer(group) as writer:
        append(writer, 2)
    group.close()
    for machine in (two, one):
        group = machine.group()
        gaps = Journal(machine.journal).reader(SOURCE).gaps()
        assert [(gap.position, gap.reason) for gap in gaps] == [(10, "the publisher was away")]
        assert machine.rows() == list(range(12))
        group.close()
