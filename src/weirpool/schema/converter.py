"""Converts bytes to values and back, by a type or by a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from ..errors import LocalError, Mismatch
from ..values.decoder import ERRORS, Decoder, Hook
from .contents import Found, check_supported, contents, shown_type
from .foreign import MAX_MESSAGE_CHARACTERS, MAX_PROBLEMS, Validator, pointer
from .formats import FORMATS, JSON, Format
from .models import InvalidModel, Model, is_model, model_of
from .models import decode as decode_model
from .models import encode as encode_model

__all__ = ["INVALID_REQUEST", "Converter", "problems_in_json", "validation_extras"]

INVALID_REQUEST: Final = "INVALID_REQUEST"
"""River, Clients, servers, and RPCs: the code for a request that does not match its schema."""

# How msgspec reports the location: "... - at `$.orders[0].n`", and "at `key` in `$`" for a key.
_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?:key` in `)?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING: Final = re.compile(r"missing required field `(?P<name>[^`]*)`$")
_KEPT: Final = (bytes, bytearray, memoryview, datetime, date, time, timedelta, UUID, Decimal)
"""Types that each format writes in its own way."""
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class Converter:
    """Reads and writes values of one type.

    msgspec reads and writes values, and pydantic its models in them. pydantic also reads the lists, dicts and unions
    around models, and dataclasses with unions of models, which msgspec does not support.

    Args:
        wanted: A type, or a JSON Schema as a dict. With a schema, values are JSON types (dicts and lists), and reading
            needs the package jsonschema-rs.

    Attributes:
        wanted: As above.
        write: Returns the bytes of a value of this type: ``write(form, value)``. Those of a model contain the fields of
            the type, not of a subclass. Raises LocalError if the value cannot be encoded.

    Raises:
        LocalError: The type contains a class that is not supported, or the schema is refused.

    """

    __slots__ = ("_decoders", "_model", "_read", "_validator", "wanted", "write")

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted
        self._model: Model | None = None
        # The type that msgspec reads, and what reads the rest.
        self._read: tuple[Any, Hook | None] = (Any, None)
        self.write: Callable[[Format, Any], bytes] = Converter.encode
        self._validator = Validator(wanted) if isinstance(wanted, Mapping) else None
        if self._validator is None:
            self._choose(wanted, list(contents(wanted)))
        self._decoders = {form: form.decoder(*self._read) for form in FORMATS}

    def _choose(self, wanted: Any, found: list[Found]) -> None:
        """Check a type, and choose who reads it."""
        if not any(is_model(each.cls) for each in found):
            self._read_by_msgspec(wanted, found, None)
            return
        with_records = any(each.is_record for each in found)
        try:
            if with_records:
                self._read_by_msgspec(wanted, found, decode_model)
            else:
                self._read_by_pydantic(wanted)
        except LocalError as error:
            # pydantic reads more unions than msgspec, but no structs.
            try:
                self._read_by_pydantic(wanted)
            except LocalError:
                check_supported(wanted, found)
                raise error from None

    def _read_by_msgspec(self, wanted: Any, found: list[Found], hook: Hook | None) -> None:
        check_supported(wanted, found)
        for each in found:
            if is_model(each.cls):
                model_of(each.cls)
        try:
            JSON.decoder(wanted, hook)
        except (TypeError, NameError) as error:
            raise LocalError(f"{shown_type(wanted)} is not a type that can be decoded: {error}") from None
        self._read = wanted, hook

    def _read_by_pydantic(self, wanted: Any) -> None:
        self._model = model_of(wanted)
        # To msgspec, a model is any value, which the hook reads.
        self._read = object, self._model.hook
        self.write = partial(_written, self._model.encode)

    def __repr__(self) -> str:
        return f"<Converter of {self.wanted!r}>"

    def decode(self, form: Format, data: bytes) -> Any:
        """Return the value of `data`.

        Raises:
            Mismatch: The data does not match the type.

        """
        if not data:
            return self._nothing()
        if form.too_deep(data) >= 0:
            form.check_depth(data)
        decoder = self._decoders.get(form)
        if decoder is None:
            decoder = self._decoders[form] = form.decoder(*self._read)
        refused = False
        try:
            value = decoder.first(data)
        except ERRORS:
            # The error has what the first attempt holds, so the second one begins without it.
            refused = True
        if refused:
            value = _again(decoder, form, data)
        if self._validator is not None:
            self._validator.check(value)
        return value

    def _nothing(self) -> Any:
        """Return the value of no data, which a peer may send instead of null, as Spring does for void and empty."""
        try:
            return self.decode(JSON, b"null")
        except Mismatch:
            raise Mismatch("there is no data") from None

    def model_schema(self, *, sent: bool = False) -> dict[str, Any] | None:
        """Return the JSON Schema of a type that pydantic reads; None if msgspec does, whose hook is `json_schema`.

        See :func:`weirpool.schema.models.json_schema`.
        """
        return None if self._model is None else self._model.json_schema(sent=sent)

    @staticmethod
    def encode(form: Format, value: Any) -> bytes:
        """Return the bytes of a value of any type.

        Raises:
            LocalError: A value of this type cannot be encoded.

        """
        # msgspec would take a dataclass of pydantic for an ordinary one.
        if hasattr(value, "__pydantic_serializer__"):
            return _written(encode_model, form, value)
        try:
            return form.encode(value)
        except TypeError:
            # There may be models in it.
            return _written(_with_models, form, value)
        except _UNWRITABLE as error:
            raise _unwritable(form, value, error) from None


_UNWRITABLE: Final = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def _again(decoder: Decoder, form: Format, data: bytes) -> Any:
    """Return the value of data that is read a second time. Raises Mismatch."""
    try:
        return decoder.again(data)
    except msgspec.ValidationError as error:
        raise _mismatch(error) from None
    except ERRORS as error:
        raise Mismatch(f"not valid {form.name}: {error}"[:MAX_MESSAGE_CHARACTERS]) from None


def _written(prepare: Callable[[Any], Any], form: Format, value: Any) -> bytes:
    try:
        return form.encode(prepare(value))
    except _UNWRITABLE as error:
        raise _unwritable(form, value, error) from None


def _unwritable(form: Format, value: Any, error: Exception) -> LocalError:
    return LocalError(f"a {type(value).__name__} cannot be written as {form.name}: {error}")


def _with_models(value: Any) -> Any:
    """Return a value with its models in their JSON form."""
    return msgspec.to_builtins(value, builtin_types=_KEPT, enc_hook=encode_model)


def problems_in_json(error: Mismatch) -> bytes:
    """Return the JSON body that tells a peer what is wrong with its data."""
    return JSON.encode({"errors": _listed(error)})


def validation_extras(error: Mismatch) -> dict[str, Any]:
    """Return the same in River's format: the extras of INVALID_REQUEST."""
    return {"totalErrors": error.total, "firstValidationErrors": _listed(error)}


def _listed(error: Mismatch) -> list[dict[str, str]]:
    return [{"path": path, "message": message} for path, message in error.problems[:MAX_PROBLEMS]]


def _mismatch(error: msgspec.ValidationError) -> Mismatch:
    """Return the problem that msgspec reports, or those of the model in which it occurred."""
    path, what = _problem(str(error))
    inner = error.__cause__
    if not isinstance(inner, InvalidModel):
        return Mismatch(problems=[(path, what)])
    problems = [(path + below, message) for below, message in inner.mismatch.problems]
    return Mismatch(problems=problems, total=inner.mismatch.total)


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
