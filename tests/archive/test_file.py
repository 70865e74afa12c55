from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.archive.logs import catalog, fill, seal_all
from weirpool.archive.file import SealedFile
from weirpool.archive.manifest import Segment
from weirpool.errors import JournalCorrupt


def sealed(path: Path) -> tuple[str, Segment]:
    fill(path, 10, 10)
    seal_all(path)
    found = catalog(path)
    manifest = found.newest()
    assert manifest is not None
    return found.name(manifest.segments[0]), manifest.segments[0]


def test_row_groups_are_found_by_position(tmp_path: Path) -> None:
    name, segment = sealed(tmp_path)
    file = SealedFile(catalog(tmp_path).store, name, segment)
    assert file.groups(0, 10) == file.groups(9, 10) == [0] and file.groups(10, 20) == []
    rows = file.rows(0, ["data", "position"])
    assert rows["position"].to_pylist() == [*range(10)] and rows["data"].to_pylist()[3] == b"3"
    file.close()


@pytest.mark.parametrize("offset", range(4, 400, 7))
def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path, offset: int) -> None:
    name, segment = sealed(tmp_path)
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    content[offset] ^= 16
    path.write_bytes(content)
    with pytest.raises(JournalCorrupt, match=f"{name}: the file is damaged"):
        SealedFile(catalog(tmp_path).store, name, segment).rows(0, ["position", "time", "stream", "data", "metadata"])


@pytest.mark.parametrize(
    "changes",
    [{"rows": 9}, {"chunks": b""}, {"footer": "0" * 32}, {"footer_bytes": 1 << 30}, {"footer_bytes": 0}, {"size": 1}],
)
def test_an_entry_that_differs_is_noticed(tmp_path: Path, changes: dict[str, object]) -> None:
    name, segment = sealed(tmp_path)
    with pytest.raises(JournalCorrupt, match="restore this file"):
        SealedFile(catalog(tmp_path).store, name, msgspec.structs.replace(segment, **changes))
