from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from penstock import DiskFull, JournalCorrupt, JournalLocked, LocalError
from penstock.journal import JournalReader, JournalWriter
from tests.journal.batches import batch, numbers


def segments(path):
    return sorted(path.glob("source=s/*.arrows"))


def read_all(path) -> list[int]:
    reader = JournalReader(path, "s")
    return numbers(reader.read(reader.first, reader.end))


def test_what_append_returned_for_is_there_after_opening_again(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s") as writer:
        assert (writer.position, writer.state) == (0, None)
        assert writer.append(batch(0, 10), "stream", b"one") == 10
        assert writer.append(batch(10, 5), "stream", b"two") == 15
    with JournalWriter.open(tmp_path, "s") as writer:
        assert (writer.position, writer.state) == (15, b"two")
        assert writer.append(batch(15, 1), "stream") == 16
        assert writer.state == b"two"
    assert read_all(tmp_path) == list(range(16))


def test_an_empty_batch_records_a_state(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s") as writer:
        assert writer.append(batch(0, 0), "stream", b"begun") == 0
    with JournalWriter.open(tmp_path, "s") as writer:
        assert (writer.position, writer.state) == (0, b"begun")


def test_a_torn_tail_is_cut_at_every_byte(tmp_path) -> None:
    # THREATS 80
    with JournalWriter.open(tmp_path / "whole", "s") as writer:
        writer.append(batch(0, 3), "stream", b"kept")
        before = segments(tmp_path / "whole")[0].stat().st_size
        writer.append(batch(3, 3), "stream", b"torn")
    octets = segments(tmp_path / "whole")[0].read_bytes()
    for length in range(before, len(octets), 7):
        place = tmp_path / "torn"
        shutil.copytree(tmp_path / "whole", place)
        segments(place)[0].write_bytes(octets[:length])
        with JournalWriter.open(place, "s") as writer:
            assert (writer.position, writer.state) == (3, b"kept")
            writer.append(batch(3, 2), "stream")
        assert read_all(place) == list(range(5))
        shutil.rmtree(place)


def test_a_flipped_bit_is_an_error_that_names_the_place(tmp_path) -> None:
    # THREATS 80
    with JournalWriter.open(tmp_path, "s") as writer:
        for first in range(0, 40, 10):
            writer.append(batch(first, 10, size=200), "stream")
    (segment,) = segments(tmp_path)
    octets = bytearray(segment.read_bytes())
    at = octets.index(b"00000015")
    octets[at] ^= 1
    segment.write_bytes(bytes(octets))
    with pytest.raises(JournalCorrupt, match=segment.name):
        read_all(tmp_path)


def test_a_second_writer_is_kept_out(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s"):
        with pytest.raises(JournalLocked, match=str(os.getpid())):
            JournalWriter.open(tmp_path, "s")
        JournalWriter.open(tmp_path, "another").close()
    JournalWriter.open(tmp_path, "s").close()


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path, monkeypatch) -> None:
    # THREATS 80
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    with JournalWriter.open(tmp_path, "s") as writer:
        writer.append(batch(0, 5), "stream")
        with monkeypatch.context() as patch:
            for name in ("pwrite", "write", "writev", "pwritev"):
                patch.setattr(os, name, full)
            with pytest.raises(DiskFull):
                writer.append(batch(5, 5), "stream")
            assert writer.position == 5
        assert writer.append(batch(5, 5), "stream") == 10
    assert read_all(tmp_path) == list(range(10))


def test_segments_roll_and_the_budget_counts(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s", segment_bytes=4_000, budget_bytes=16_000) as writer:
        assert writer.room()
        while writer.room():
            writer.append(batch(writer.position, 20), "stream")
        assert writer.free_bytes == 0
        assert len(segments(tmp_path)) > 2
    assert read_all(tmp_path) == list(range(JournalReader(tmp_path, "s").end))


def test_wrong_columns_are_refused(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s") as writer:
        with pytest.raises(LocalError):
            writer.append(batch(0, 1).select(["metadata"]), "stream")
        with pytest.raises(LocalError, match="state"):
            writer.append(batch(0, 1), "stream", bytes(1 << 20))


PROGRAM = """
import sys
from penstock.journal import JournalWriter
from tests.journal.batches import batch
with JournalWriter.open(sys.argv[1], "s", segment_bytes=100_000) as writer:
    while True:
        writer.append(batch(writer.position, 50), "stream")
        print(writer.position, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_all_that_append_returned_for(tmp_path) -> None:
    said = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(40):
            said = int(process.stdout.readline())
        process.kill()
        rest = process.stdout.read().split()
        # The last line may be cut in two.
        said = max([said, *map(int, rest[:-1])])
        process.wait()
        process.stdout.close()
    found = read_all(tmp_path)
    assert found == list(range(len(found)))
    assert len(found) >= said
