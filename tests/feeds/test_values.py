from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from weirpool.errors import LocalError
from weirpool.feeds.values import MAX_SECRET_BYTES, Reference, Seconds, Size, convert, resolve


def test_sizes_and_durations_of_a_file() -> None:
    assert (convert("256MiB", Size), convert(7, Size), convert("30d", Seconds)) == (2**28, 7, 2_592_000)
    with pytest.raises(msgspec.ValidationError, match="'lots' is not valid; it must be a size"):
        convert("lots", Size)
    with pytest.raises(msgspec.ValidationError, match="'1w' is not valid; it must be a duration"):
        convert("1w", Seconds)


def test_text_is_itself_or_stored_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("secret\r\n")
    monkeypatch.setenv("TOKEN", "from the environment")
    assert resolve("plain", tmp_path) == "plain"
    assert resolve(Reference(file="token"), tmp_path) == "secret"
    assert resolve(Reference(file=str(tmp_path / "token")), Path("/elsewhere")) == "secret"
    assert resolve(Reference(env="TOKEN"), tmp_path) == "from the environment"


def test_missing_value_is_an_error_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    (tmp_path / "binary").write_bytes(b"secret\xff")
    (tmp_path / "long").write_bytes(bytes(MAX_SECRET_BYTES + 1))
    for reference, part in (
        (Reference(env="TOKEN"), "variable 'TOKEN' is not set"),
        (Reference(file="nowhere"), "No such file"),
        (Reference(file="binary"), "not valid UTF-8"),
        (Reference(file="long"), "longer than"),
    ):
        with pytest.raises(LocalError, match=part) as caught:
            resolve(reference, tmp_path)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("table", [{}, {"env": "A", "file": "B"}, {"envy": "A"}])
def test_place_has_exactly_one_field(table: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        convert(table, Reference)
