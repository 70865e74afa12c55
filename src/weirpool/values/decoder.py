"""Decodes values of one type: fast, and again where the data has values in other forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cached_property, partial
from typing import Any, Final, Protocol

import msgspec

from .conversion import Conversion, Forms, Kind

__all__ = ["ERRORS", "Decode", "Decoder", "Doubts", "Hook", "Reader", "converter"]

Decode = Callable[[bytes], Any]
Doubts = Callable[[bytes], bool]
Hook = Callable[[type, Any], Any]
"""Converts a value to a type that msgspec does not support."""

ERRORS: Final = (ValueError, RecursionError)
"""What is raised for data that is malformed or of another type. Errors of msgspec are among them."""


class Reader(Protocol):
    """Reads one format."""

    @property
    def forms(self) -> Forms:
        """The forms that values have in it."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """Arguments of :func:`msgspec.convert` for its values."""
        ...

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data, and raises one of `ERRORS` for the rest.

        Raises:
            TypeError: msgspec does not support the type.

        """
        ...

    def loose(self, conversion: Conversion) -> Decode:
        """Return what decodes data for a conversion, without fields that the type does not have."""
        ...

    def doubts(self, kinds: Set[Kind]) -> Doubts | None:
        """Return what tells data that `strict` may decode wrongly to types of these kinds; None: there is none."""
        ...

    def too_deep(self, data: bytes) -> int:
        """Return the offset at which data is nested too deeply for a decoder, or -1."""
        ...

    def count(self, data: bytes) -> int:
        """Return about how many values data has, of which containers count twice."""
        ...


def converter(wanted: Any, hook: Hook | None, options: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return what converts values to a type: msgspec takes a third longer with a hook that is None."""
    return partial(msgspec.convert, type=wanted, **options, **({} if hook is None else {"dec_hook": hook}))


class Decoder:
    """Decodes values of one type from one format.

    Args:
        reader: Reads the format.
        wanted: The type.
        hook: Converts values to types that msgspec does not support.

    Raises:
        TypeError: msgspec does not support the type.

    Attributes:
        strict: Decodes most data, and raises one of `ERRORS` for the rest.

    """

    def __init__(self, reader: Reader, wanted: Any = Any, hook: Hook | None = None) -> None:
        self._reader = reader
        self._wanted = wanted
        self._hook = hook
        self.strict = reader.strict(wanted, hook)

    @cached_property
    def is_doubtful(self) -> Doubts | None:
        """Returns True for data that `strict` may decode wrongly; None: it decodes nothing wrongly."""
        return self._reader.doubts(self._conversion.kinds)

    @cached_property
    def first(self) -> Decode:
        """Decodes most data, and raises one of `ERRORS` for what `again` must read."""
        is_doubtful, strict = self.is_doubtful, self.strict
        if is_doubtful is None:
            return strict

        def first(data: bytes) -> Any:
            if is_doubtful(data):
                raise ValueError("it is read again")
            return strict(data)

        return first

    @cached_property
    def _conversion(self) -> Conversion:
        return Conversion(self._wanted, self._reader.forms)

    @cached_property
    def _loose(self) -> Decode:
        return self._reader.loose(self._conversion)

    @cached_property
    def _convert(self) -> Callable[[Any], Any]:
        return converter(self._wanted, self._hook, self._reader.options)

    def decode(self, data: bytes) -> Any:
        """Return the value.

        Raises:
            ValueError: The data is malformed, or of another type: `msgspec.ValidationError`.
            RecursionError: It is nested too deeply for this thread.

        """
        try:
            return self.first(data)
        except ERRORS:
            # The error has what the first attempt holds, so the second one begins without it.
            pass
        return self.again(data)

    def again(self, data: bytes) -> Any:
        """Return the value of data that `first` refuses. It raises the same as `decode`."""
        return self._convert(self._conversion.fix(self._loose(data)))
