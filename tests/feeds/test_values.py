from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.errors import LocalError
from penstock.feeds.values import MAX_SECRET_BYTES, Reference, Seconds, Size, convert, resolve


@pytest.mark.parametrize(
    ("value", "size"), [(1, 1), ("1000000", 10**6), ("2KiB", 2048), ("256MiB", 2**28), ("4GiB", 2**32)]
)
def test_sizes(value: object, size: int) -> None:
    assert convert(value, Size) == size


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "", "0", "1 MiB", "1MB", "1e6", "lots", None])
def test_invalid_size_is_an_error(value: object) -> None:
    with pytest.raises(msgspec.ValidationError, match="256MiB"):
        convert(value, Size)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(0, 0), (1.5, 1.5), ("500ms", 0.5), ("90s", 90), ("15m", 900), ("1.5h", 5400), ("30d", 2592000)],
)
def test_durations(value: object, seconds: float) -> None:
    assert convert(value, Seconds) == seconds


@pytest.mark.parametrize("value", [-1, True, float("nan"), float("inf"), "", "5", "5 s", "1w", "-1s", 1e300])
def test_invalid_duration_is_an_error(value: object) -> None:
    with pytest.raises(msgspec.ValidationError, match="30d"):
        convert(value, Seconds)


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
