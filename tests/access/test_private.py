"""Private files are private, whatever is there before, and nothing is written through a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weirpool import LocalError
from weirpool.access.private import create_private, open_private, replacing


def created(path: Path, data: bytes) -> None:
    with create_private(path) as file:
        file.write(data)


def replaced(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


WAYS = [created, replaced]
Way = Callable[[Path, bytes], None]


@pytest.fixture(autouse=True, params=[0o000, 0o077, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("way", WAYS)
def test_a_new_file_is_for_its_owner_only(way: Way, tmp_path: Path) -> None:
    way(tmp_path / "file", b"secret")
    assert mode(tmp_path / "file") == 0o600 and (tmp_path / "file").read_bytes() == b"secret"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("way", WAYS)
def test_an_existing_file_is_replaced(way: Way, tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_text("before")
    path.chmod(0o644)
    os.link(path, other)
    with path.open() as reader:
        way(path, b"secret")
        # Who has the old file open, or another name of it, does not see the new one.
        assert reader.read() == "before" == other.read_text()
    assert mode(path) == 0o600 and path.read_bytes() == b"secret"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_through_links_and_devices(way: Way, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("before")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(0o700)
    for name, to in (("link", target), ("dangling", tmp_path / "none"), ("loop", tmp_path / "loop")):
        (tmp_path / name).symlink_to(to)
    before = sorted(os.listdir(tmp_path))
    for name in ("link", "dangling", "loop", "pipe", "folder"):
        with pytest.raises(LocalError, match="is not a file, but a link"):
            way(tmp_path / name, b"secret")
    assert target.read_text() == "before" and sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_prepared_name_is_no_trap(way: Way, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("before")
    (tmp_path / f".file.{os.getpid()}").symlink_to(target)
    way(tmp_path / "file", b"secret")
    assert target.read_text() == "before" and (tmp_path / "file").read_bytes() == b"secret"


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be_written_is_named(way: Way, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot write"):
        way(tmp_path / "none" / "file", b"")
    with pytest.raises(LocalError, match="cannot write"):
        way(tmp_path / ("x" * 300), b"")


def test_a_file_that_is_not_complete_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["file"]


def test_an_existing_private_file_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o640)
    os.close(open_private(path, os.O_RDWR))
    assert path.read_text() == "before" and mode(path) == 0o640
    with pytest.raises(FileExistsError):
        open_private(path, os.O_RDWR | os.O_EXCL)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        open_private(tmp_path / "link", os.O_RDWR)
