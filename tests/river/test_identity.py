from __future__ import annotations

import pytest

from weirpool.errors import UrlError
from weirpool.river.identity import Identity, base36, data_mime


def test_options_of_a_url() -> None:
    assert Identity.of({}) == Identity("json", "", "")
    assert Identity.of({"codec": "msgpack", "client": "c", "server": "s", "ca": "x"}) == Identity("msgpack", "c", "s")
    assert data_mime({"codec": "msgpack"}) == "application/vnd.river+msgpack"
    with pytest.raises(UrlError, match="unknown codec 'xml'"):
        Identity.of({"codec": "xml"})
    with pytest.raises(UrlError, match="at most 1024"):
        Identity.of({"client": "x" * 2_000})


def test_base36() -> None:
    assert [base36(number) for number in (0, 35, 36, 36**3)] == ["0", "z", "10", "1000"]
    assert all(int(base36(number), 36) == number for number in range(5_000))
