from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.cli.values import read_bytes
from weirpool.errors import LocalError


def test_plain_value_is_its_own_bytes() -> None:
    assert read_bytes("grün") == "grün".encode()
    # Python passes an argument that is not valid UTF-8 in this form.
    assert read_bytes("\udcff") == b"\xff"


def test_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"\r\n\xff")
    assert read_bytes(f"@{file}") == b"\r\n\xff"


def test_missing_file_is_named() -> None:
    with pytest.raises(LocalError, match=r"'/no/such/file': No such file"):
        read_bytes("@/no/such/file")
