"""Converts bytes to values and back, by a type or by a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import LocalError, Mismatch
from .foreign import MAX_MESSAGE_CHARACTERS, MAX_PROBLEMS, Validator, pointer
from .formats import FORMATS, JSON, Format

__all__ = ["INVALID_REQUEST", "Converter", "problems_in_json", "validation_extras"]

INVALID_REQUEST: Final = "INVALID_REQUEST"
"""River, Clients, servers, and RPCs: the code for a request that does not match its schema."""

# How msgspec reports the location: "... - at `$.orders[0].n`", and "at `key` in `$`" for a key.
_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?:key` in `)?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING: Final = re.compile(r"missing required field `(?P<name>[^`]*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class Converter:
    """Reads and writes values of one type.

    Args:
        wanted: A type that msgspec supports, or a JSON Schema as a dict. With a schema, values are JSON types (dicts
            and lists), and reading needs the package jsonschema-rs.

    Attributes:
        wanted: As above.

    Raises:
        LocalError: msgspec does not support the type, or the schema is refused.

    """

    __slots__ = ("_decoded", "_decoders", "_validator", "wanted")

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted
        self._validator = Validator(wanted) if isinstance(wanted, Mapping) else None
        self._decoded = Any if self._validator else wanted
        try:
            self._decoders = {form: form.decoder(self._decoded) for form in FORMATS}
        except (TypeError, NameError) as error:
            raise LocalError(f"{wanted!r} is not a type that can be decoded: {error}") from None

    def __repr__(self) -> str:
        return f"<Converter of {self.wanted!r}>"

    def decode(self, form: Format, data: bytes) -> Any:
        """Return the value of `data`.

        Raises:
            Mismatch: The data does not match the type.

        """
        form.check_depth(data)
        decoder = self._decoders.get(form)
        if decoder is None:
            decoder = self._decoders[form] = form.decoder(self._decoded)
        try:
            value = decoder.decode(data)
        except msgspec.ValidationError as error:
            raise Mismatch(problems=[_problem(str(error))]) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Mismatch(f"not valid {form.name}: {error}"[:MAX_MESSAGE_CHARACTERS]) from None
        if self._validator is not None:
            self._validator.check(value)
        return value

    @staticmethod
    def encode(form: Format, value: Any) -> bytes:
        """Return the bytes of a value.

        Raises:
            LocalError: A value of this type cannot be encoded.

        """
        try:
            return form.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise LocalError(f"a {type(value).__name__} cannot be written as {form.name}: {error}") from None


def problems_in_json(error: Mismatch) -> bytes:
    """Return the JSON body that tells a peer what is wrong with its data."""
    return JSON.encode({"errors": _listed(error)})


def validation_extras(error: Mismatch) -> dict[str, Any]:
    """Return the same in River's format: the extras of INVALID_REQUEST."""
    return {"totalErrors": error.total, "firstValidationErrors": _listed(error)}


def _listed(error: Mismatch) -> list[dict[str, str]]:
    return [{"path": path, "message": message} for path, message in error.problems[:MAX_PROBLEMS]]


def _problem(text: str) -> tuple[str, str]:
    """Return the location of a problem reported by msgspec, as a JSON pointer, and its description."""
    match = _PLACE.match(text)
    assert match is not None
    what = match["what"]
    steps = [name or index for name, index in _STEP.findall(match["path"] or "")]
    missing = _MISSING.search(what)
    if missing is not None:
        # As in the reference, the path is that of the missing field.
        steps.append(missing["name"])
    # msgspec does not report the key of a dict; "..." represents it.
    return pointer(steps), what[:MAX_MESSAGE_CHARACTERS]
