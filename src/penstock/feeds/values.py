"""Values in a configuration file: sizes, durations, and texts that may be stored elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ..errors import LocalError

__all__ = ["Reference", "Seconds", "Size", "Text", "convert", "resolve"]

UNITS: Final = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
PERIODS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
MAX_SECONDS: Final = 100 * 366 * 86_400.0
MAX_SECRET_BYTES: Final = 1 << 20
"""The size of a file with a value: larger ones are mistakes, such as /dev/zero."""
_SIZE: Final = re.compile(r"([1-9][0-9]{0,17})(KiB|MiB|GiB|TiB|)")
_PERIOD: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)")


class Size(int):
    """A size in bytes: 1000000, or a text such as "256MiB"."""

    @classmethod
    def read(cls, value: object) -> Size:
        """Return the size that a file gives; `ValueError` if it is not one."""
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            return cls(int(match[1]) * UNITS[match[2]])
        if type(value) is int and value > 0:
            return cls(value)
        raise ValueError(f'{value!r} is not a size in bytes; use a form such as 1000000, "256MiB" or "4GiB"')


class Seconds(float):
    """A duration in seconds: a number, or a text such as "90s", "15m", "12h" or "30d"."""

    @classmethod
    def read(cls, value: object) -> Seconds:
        """Return the duration that a file gives; `ValueError` if it is not one."""
        match = _PERIOD.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            value = float(match[1]) * PERIODS[match[2]]
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS:
            return cls(value)
        raise ValueError(f'{value!r} is not a duration; use seconds, or a form such as "500ms", "90s", "12h" or "30d"')


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a value that is not in the file itself. One field is set."""

    env: str | None = None
    """The name of an environment variable."""
    file: str | None = None
    """The path of a file; a line break at its end is ignored."""

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise ValueError('a value that is stored elsewhere is {env = "NAME"} or {file = "PATH"}')


Text: TypeAlias = str | Reference
"""A text, or the place where it is stored."""


def convert(value: object, wanted: Any) -> Any:
    """Return a value of a TOML file as an object of the type `wanted`; `msgspec.ValidationError` if it is not one."""
    return msgspec.convert(value, wanted, dec_hook=lambda kind, given: kind.read(given))


def resolve(text: Text, folder: Path) -> str:
    """Return a text as it is stored now.

    Args:
        text: The text, or its place.
        folder: The folder that relative paths start from.

    Raises:
        LocalError: A variable is not set, or a file cannot be read. The error has no part of the value.

    """
    if isinstance(text, str):
        return text
    if text.env is not None:
        if text.env not in os.environ:
            raise LocalError(f"the environment variable {text.env!r} is not set")
        return os.environ[text.env]
    path = folder / str(text.file)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise LocalError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if len(data) > MAX_SECRET_BYTES:
        raise LocalError(f"{str(path)!r} is longer than {MAX_SECRET_BYTES} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        # The error would contain the value.
        pass
    raise LocalError(f"the content of {str(path)!r} is not valid UTF-8")
