"""Reads JSON, also with a byte order mark, with lone surrogates that nobody asked for, and with NaN and infinities."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Set
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import inspect

from ..depth import json_too_deep
from .conversion import Conversion, Forms, Kind
from .decoder import Decode, Doubts, Hook
from .forms import OPEN, TIME_FORMS, TIMES
from .precision import has_finer_time

__all__ = ["ESCAPE", "JSON_FORMS", "JsonReader", "without_lone_surrogates"]

ESCAPE: Final = b"\\u"
"""How the escape of a surrogate begins."""
# Each escape of a string; the group matches a lone surrogate.
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_NAMES: Final = rb"NaN|[-+]?Infinity|[-+]INF"
_NAME: Final = re.compile(_NAMES)
_N, _I = b"NI"
# A string is one token, and an unterminated one extends to the end, so that no byte is scanned twice. A name is a
# number only where it is a whole value, and no key.
_VALUE: Final = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"?|(?<![-+.\w])(' + _NAMES + rb")(?=[ \t\r\n]*+(?:[,\]}]|\Z))", re.DOTALL
)
# A text that cannot be read as anything but a text.
_MARK: Final = "\x1a"
_NUMBERS: Final = {
    _MARK + name: float(name.replace("INF", "Infinity"))
    for name in ("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF")
}


def _number(value: Any) -> Any:
    """Return the decimals in a value as floats, which have been kept for types of decimals."""
    if type(value) is Decimal:
        number = float(value)
        if not isfinite(number):
            raise msgspec.ValidationError("Number out of range")
        return number
    if type(value) is list:
        return list(map(_number, value))
    return {name: _number(each) for name, each in value.items()} if type(value) is dict else value


def _named_number(value: Any) -> Any:
    return _NUMBERS.get(value, value) if type(value) is str else _number(value)


def _text(value: Any) -> Any:
    if type(value) is str and value in _NUMBERS:
        raise msgspec.ValidationError("Expected `str`, got `float`")
    return value


JSON_FORMS: Final[Forms] = {**TIME_FORMS, **dict.fromkeys((*OPEN, inspect.FloatType), lambda _: _number)}
"""The forms that values have in JSON."""
_NAMED_FORMS: Final[Forms] = {inspect.FloatType: lambda _: _named_number, inspect.StrType: lambda _: _text}


class JsonReader:
    """Reads JSON.

    Args:
        forms: The forms that values have.
        named_numbers: Read NaN, Infinity, +Infinity, -Infinity, +INF and -INF as numbers, as Spark's `from_json` does.

    """

    options: Final = {"str_keys": True}
    too_deep = staticmethod(json_too_deep)

    def __init__(self, forms: Forms = JSON_FORMS, *, named_numbers: bool = False) -> None:
        self._named_numbers = named_numbers
        self.forms: Forms = {**forms, **_NAMED_FORMS} if named_numbers else forms

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data."""
        return msgspec.json.Decoder(wanted, dec_hook=hook).decode

    def loose(self, conversion: Conversion) -> Decode:
        """Return what decodes data for a conversion."""
        decode = msgspec.json.Decoder(conversion.loose, float_hook=Decimal).decode
        return lambda data: decode(self._usual(data))

    def doubts(self, kinds: Set[Kind]) -> Doubts | None:
        """Return what tells data that `strict` may decode wrongly: times with digits beyond the microsecond."""
        return None if TIMES.isdisjoint(kinds) else has_finer_time

    def count(self, data: bytes) -> int:
        """Return about how many values data has."""
        return data.count(b",") + data.count(b"[") + data.count(b"{") + 2 * data.count(b":")

    def _usual(self, data: bytes) -> bytes:
        """Return data as msgspec reads it."""
        # RFC 8259, section 8.1: parsers may ignore a byte order mark.
        data = data.removeprefix(BOM_UTF8)
        # A byte that is not UTF-8 is an error only where it is read.
        if data.find(ESCAPE) >= 0:
            data = without_lone_surrogates(data, b"\xff")
        if self._named_numbers and (_N in data or _I in data) and _NAME.search(data):
            return _VALUE.sub(_marked, data)
        return data


def without_lone_surrogates(data: bytes, other: bytes) -> bytes:
    """Return JSON with other bytes in place of escaped lone surrogates, which JavaScript writes."""
    return _ESCAPES.sub(lambda escape: escape.group() if escape.group(1) is None else other, data)


def _marked(value: re.Match[bytes]) -> bytes:
    return value.group() if value.group(1) is None else b'"\\u%04x%s"' % (ord(_MARK), value.group(1))
