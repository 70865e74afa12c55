from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from weirpool import LocalError, Settings
from weirpool.settings import DEFAULT_SETTINGS


def test_settings_are_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        DEFAULT_SETTINGS.credit = 1  # type: ignore[misc]
    assert replace(DEFAULT_SETTINGS, credit=1).credit == 1
    assert Settings() == DEFAULT_SETTINGS


@pytest.mark.parametrize("name", ["credit", "batch_rows", "max_streams", "max_frame_bytes", "output_high_bytes"])
def test_settings_below_one_raise(name: str) -> None:
    with pytest.raises(LocalError, match=rf"Settings\.{name} is 0"):
        Settings(**{name: 0})


@pytest.mark.parametrize(
    "wrong",
    [
        {"fragment_bytes": 63},
        {"fragment_bytes": 2**24},
        {"max_frame_bytes": 1024, "fragment_bytes": 1000},
        {"keepalive_interval": 0},
        {"keepalive_lifetime": 0.0001},
        {"keepalive_interval": 2**31 / 1000},
        {"keepalive_lifetime": float("nan")},
    ],
    ids=str,
)
def test_settings_outside_the_wire_range_raise(wrong: dict[str, Any]) -> None:
    # THREATS 25, from our own side
    with pytest.raises(LocalError, match=rf"Settings\.({'|'.join(wrong)}) is"):
        Settings(**wrong)


def test_default_limits_are_consistent() -> None:
    settings = DEFAULT_SETTINGS
    assert settings.fragment_bytes < settings.max_frame_bytes <= settings.max_payload_bytes
    assert settings.max_payload_bytes <= settings.max_reassembly_bytes
    assert settings.max_setup_frame_bytes <= settings.max_frame_bytes
    assert settings.keepalive_interval < settings.keepalive_lifetime
    assert settings.credit <= settings.max_credit
    assert all(isinstance(getattr(settings, field.name), int | float | str | tuple) for field in fields(settings))


@pytest.mark.parametrize("origin", ["https://app.example", "http://[::1]:8080", "null", "*"])
def test_valid_origins_are_accepted(origin: str) -> None:
    assert Settings(origins=(origin,)).origins == (origin,)


@pytest.mark.parametrize("origin", ["", "app.example", "https://app.example/", "https://a b", "https://*.example/x"])
def test_invalid_origins_raise(origin: str) -> None:
    with pytest.raises(LocalError, match=r"Settings.origins has .*; write https://host, with no path, or \*"):
        Settings(origins=(origin,))


@pytest.mark.parametrize("entry", ["", "10.0.0.1/8", "proxy.example", "*"])
def test_invalid_networks_of_proxies_raise(entry: str) -> None:
    with pytest.raises(LocalError, match=r"Settings.trusted_proxies: .*; write networks such as 10.0.0.0/8, or unix"):
        Settings(trusted_proxies=("::1", entry))


def test_proxy_protocol_needs_trusted_proxies() -> None:
    with pytest.raises(LocalError, match=r"Settings.proxy_protocol needs trusted_proxies"):
        Settings(proxy_protocol=True)
    assert Settings(proxy_protocol=True, trusted_proxies=("unix", "::1")).proxy_protocol


@pytest.mark.parametrize("name", ["data_mime", "metadata_mime"])
@pytest.mark.parametrize("mime", ["é", "x" * 256, "text/plain\0", "text\0plain", "text/plain\n"])
def test_invalid_mime_types_raise(name: str, mime: str) -> None:
    # Not only when the set-up is written, where nobody waits for an error.
    with pytest.raises(LocalError, match=rf"Settings.{name} is .*; it must be at most 255 printable ASCII characters"):
        Settings(**{name: mime})


@pytest.mark.parametrize("value", ["", "Bearer abc", "a\tb", "x"])
def test_headers_must_be_printable_and_are_not_shown(value: str) -> None:
    settings = Settings(headers=(("X-Secret", value),))
    assert settings.headers == (("X-Secret", value),)
    assert "X-Secret" not in repr(settings)


@pytest.mark.parametrize("headers", [{"Authorization": "secret"}, ("Authorization", "secret"), ((b"A", b"secret"),)])
def test_headers_must_be_pairs_of_texts(headers: Any) -> None:
    with pytest.raises(LocalError, match=r"Settings.headers must be pairs of a name and a value") as refused:
        Settings(headers=headers)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", "b\r\nHost: x"),
        ("A", "b\n"),
        ("A", "\0"),
        ("A", " b"),
        ("A", "\xe9"),
        ("A\r\nB", "x"),
        ("", "x"),
        ("A:", "x"),
    ],
)
def test_header_injection_raises(name: str, value: str) -> None:
    with pytest.raises(LocalError, match=r"Settings.headers") as refused:
        Settings(headers=((name, value),))
    assert "Host: x" not in str(refused.value)
