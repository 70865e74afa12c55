from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from penstock import LocalError, Settings
from penstock.settings import DEFAULT_SETTINGS


def test_they_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        DEFAULT_SETTINGS.credit = 1  # type: ignore[misc]
    assert replace(DEFAULT_SETTINGS, credit=1).credit == 1
    assert Settings() == DEFAULT_SETTINGS


@pytest.mark.parametrize("name", ["credit", "batch_rows", "max_streams", "max_frame_bytes", "output_high_bytes"])
def test_what_must_be_at_least_one_is(name: str) -> None:
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
def test_what_the_wire_cannot_say_is_refused(wrong: dict[str, Any]) -> None:
    # THREATS 25, from our own side
    with pytest.raises(LocalError, match=rf"Settings\.({'|'.join(wrong)}) is"):
        Settings(**wrong)


def test_limits_hold_each_other() -> None:
    settings = DEFAULT_SETTINGS
    assert settings.fragment_bytes < settings.max_frame_bytes <= settings.max_payload_bytes
    assert settings.max_payload_bytes <= settings.max_reassembly_bytes
    assert settings.max_setup_frame_bytes <= settings.max_frame_bytes
    assert settings.keepalive_interval < settings.keepalive_lifetime
    assert settings.credit <= settings.max_credit
    assert all(isinstance(getattr(settings, field.name), int | float | str) for field in fields(settings))
