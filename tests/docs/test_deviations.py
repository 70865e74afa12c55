"""Each limit that refuses what a specification permits is listed, with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Final

import pytest

from tests.docs.pages import ROOT
from weirpool.settings import DEFAULT_SETTINGS

EXEMPT: Final = {
    "credit max_credit max_credit_bytes batch_rows batch_bytes output_high_bytes max_stream_bytes": "back-pressure",
    "max_connection_bytes max_identity_bytes": "back-pressure, until unread_timeout",
    "max_calls lease_timeout fragment_bytes": "what this side sends",
    "keepalive_interval keepalive_lifetime heartbeat_interval heartbeats_until_dead": "the documents' own times",
    "max_open_rate idle_timeout": "no limit by default",
}
"""Numbers among the settings that refuse nothing that a specification permits, and why not."""
_SECTION: Final = ROOT.joinpath("docs/deviations.md").read_text().partition("\n## Limits\n")[2]
_ROWS: Final = re.findall(r"^\| (`[a-z_]+`.*?) \| (.*?) \| (.*?) \| (.*?) \|$", _SECTION, re.MULTILINE)
LISTED: Final = {
    name: default
    for names, defaults, _, _ in _ROWS
    for name, default in zip(re.findall(r"`([a-z_]+)`", names), defaults.split(", "), strict=False)
}


def _numbers() -> list[str]:
    exempt = " ".join(EXEMPT).split()
    values = {field.name: getattr(DEFAULT_SETTINGS, field.name) for field in fields(DEFAULT_SETTINGS)}
    return [name for name, value in values.items() if type(value) in (int, float) and name not in exempt]


def _written(name: str) -> str:
    """Return how the page writes the default of a setting."""
    value = getattr(DEFAULT_SETTINGS, name)
    if isinstance(value, float):
        return f"{value:g} s"
    if not name.endswith("_bytes"):
        return f"{value:,}"
    scale, unit = (20, "MiB") if value >= 1 << 20 else (10, "KiB")
    if unit == "MiB" and value % (1 << 30) == 0:
        scale, unit = 30, "GiB"
    whole, rest = divmod(value + 1, 1 << scale)
    return f"{value >> scale} {unit}" if rest else f"{whole} {unit} − 1"  # noqa: RUF001


@pytest.mark.parametrize("name", _numbers())
def test_limits_are_listed_with_their_defaults(name: str) -> None:
    assert name in LISTED, "list it in the section Limits of docs/deviations.md, or exempt it here"
    assert re.match(re.escape(_written(name)) + r"\b", LISTED[name])


def test_every_limit_that_is_listed_exists() -> None:
    assert LISTED.keys() <= {field.name for field in fields(DEFAULT_SETTINGS)}
    assert all(effect and reason for _, _, effect, reason in _ROWS)
