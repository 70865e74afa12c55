from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.arguments import check_codec, prefix_bytes, read_bytes
from penstock.errors import LocalError
from penstock.protocols import dump_of


def test_value_stands_for_itself() -> None:
    assert read_bytes("grün") == "grün".encode()
    # As Python hands over an argument that is not valid UTF-8.
    assert read_bytes("\udcff") == b"\xff"


def test_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"\r\n\xff")
    assert read_bytes(f"@{file}") == b"\r\n\xff"


def test_missing_file_is_named() -> None:
    with pytest.raises(LocalError, match=r"'/no/such/file': No such file"):
        read_bytes("@/no/such/file")


def test_framings() -> None:
    dump = dump_of("rsocket-1.0")
    assert [prefix_bytes("it", dump, name) for name in ("none", "u24", "u32-inclusive")] == [0, 3, 4]
    with pytest.raises(LocalError, match=r"u25.*u24"):
        prefix_bytes("it", dump, "u25")
    with pytest.raises(LocalError, match="omit --framing"):
        prefix_bytes("it", dump_of("reactive-streams-0"), "u24")


def test_codecs() -> None:
    check_codec(dump_of("rsocket-1.0"), "xml")
    check_codec(dump_of("river-2.0"), "msgpack")
    with pytest.raises(LocalError, match=r"xml.*json, msgpack"):
        check_codec(dump_of("river-2.0"), "xml")
