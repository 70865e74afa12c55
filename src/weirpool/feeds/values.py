"""Values in a configuration file: sizes, durations, and texts that may be stored elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from .. import units
from ..errors import LocalError

__all__ = ["Reference", "Seconds", "Size", "Text", "convert", "resolve"]

MAX_SECRET_BYTES: Final = 1 << 20
"""The size of a file with a value: larger ones are mistakes, such as /dev/zero."""


class Size(int):
    """A size in bytes: 1000000, or a text such as "256MiB"."""

    @classmethod
    def read(cls, value: object) -> Size:
        """Return the size that a file gives; `ValueError` if it is not one."""
        try:
            return cls(units.size(value))
        except ValueError as error:
            raise ValueError(f"{value!r} is not valid; {error}") from None


class Seconds(float):
    """A duration in seconds: a number, or a text such as "90s", "15m", "12h" or "30d"."""

    @classmethod
    def read(cls, value: object) -> Seconds:
        """Return the duration that a file gives; `ValueError` if it is not one."""
        try:
            return cls(units.seconds(value))
        except ValueError as error:
            raise ValueError(f"{value!r} is not valid; {error}") from None


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
