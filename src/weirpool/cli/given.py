"""Settings given on the command line as NAME=VALUE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..access.given import given_setting
from ..errors import LocalError

__all__ = ["given_settings"]


def given_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the fields of :class:`weirpool.Settings` that NAME=VALUE pairs set."""
    return dict(_setting(pair) for pair in pairs)


def _setting(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals:
        raise LocalError(f"--set {pair!r} is not NAME=VALUE; docs/reference/settings.md lists all settings")
    try:
        return given_setting(name, text)
    except ValueError as error:
        raise LocalError(f"--set {pair!r}: {error}") from None
