"""Reads MessagePack, also with what JavaScript's libraries write."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import inspect

from ..depth import count_msgpack, msgpack_too_deep
from .conversion import Conversion, Forms, Kind
from .decoder import Decode, Doubts, Hook
from .forms import BINARY_FORMS, OPEN, TIMES
from .precision import contains, has_finer_time
from .rewriting import usual_msgpack

__all__ = ["TIMESTAMP", "MsgpackReader"]

Extension = Callable[[int, memoryview], Any]

TIMESTAMP: Final = re.compile(rb"\xd6\xff|\xd7\xff|\xc7\x0c\xff")
"""Timestamp extension type: its three forms."""

# How msgpackr writes `undefined`: extension type 0 with one byte.
_UNDEFINED: Final = b"\xd4\x00\x00"


class MsgpackReader:
    """Reads MessagePack.

    Args:
        forms: The forms that values have.
        extension: Returns the value of an extension type; None: extension type 0 is msgpackr's `undefined`, which is
            null, and others are instances of `msgspec.msgpack.Ext`.

    """

    options: Final = {"builtin_types": (bytes, bytearray, memoryview)}
    too_deep = staticmethod(msgpack_too_deep)
    count = staticmethod(count_msgpack)

    def __init__(self, forms: Forms = BINARY_FORMS, extension: Extension | None = None) -> None:
        self.forms = forms
        self._extension = extension

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data."""
        return msgspec.msgpack.Decoder(wanted, dec_hook=hook, ext_hook=self._extension).decode

    def loose(self, conversion: Conversion) -> Decode:
        """Return what decodes data for a conversion."""
        decode = msgspec.msgpack.Decoder(conversion.loose, ext_hook=self._extension).decode
        # Whoever asks for extensions gets all of them.
        undefined = self._extension is None and inspect.ExtType not in conversion.kinds
        return lambda data: decode(usual_msgpack(data, undefined))

    def doubts(self, kinds: Set[Kind]) -> Doubts | None:
        """Return what tells data that `strict` may decode wrongly: times with digits beyond the microsecond.

        Where the type is open, this is also `undefined`.
        """
        if OPEN.isdisjoint(kinds):
            return None if TIMES.isdisjoint(kinds) else has_finer_time
        return partial(contains, (_UNDEFINED,)) if self._extension is None else has_finer_time
