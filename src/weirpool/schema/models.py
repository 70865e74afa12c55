"""Models of pydantic: read and written by pydantic itself, which is imported only if a class is one.

A model travels in its own JSON form, by alias, in every encoding: what ``model_dump(mode="json", by_alias=True)``
returns. Its JSON Schema describes exactly this.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from ..errors import LocalError, Mismatch
from .fitting import fits
from .foreign import MAX_MESSAGE_CHARACTERS, MAX_PROBLEMS, pointer

__all__ = ["InvalidModel", "Model", "decode", "encode", "is_model", "json_schema", "model_of"]


_ANYTHING: Final = {"description": "any value"}
"""The schema of `object`: msgspec refuses an empty one."""


def is_model(wanted: Any) -> bool:
    """Return True for a model or a dataclass of pydantic 2."""
    return isinstance(wanted, type) and "pydantic" in sys.modules and hasattr(wanted, "__pydantic_validator__")


def decode(cls: Any, value: Any) -> Any:
    """Return the instance of a model for a decoded value. A `dec_hook` of msgspec.

    For another class, it returns the value unchanged, and msgspec checks that it is an instance.

    Raises:
        InvalidModel: The value does not match the model.

    """
    return model_of(cls).hook(cls, value) if is_model(cls) else value


def encode(value: Any) -> Any:
    """Return the JSON form of an instance of a model. An `enc_hook` of msgspec.

    Raises:
        TypeError: The value is not an instance of a model.
        ValueError: The value cannot be encoded.

    """
    if not is_model(type(value)):
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
    return model_of(type(value)).encode(value)


def json_schema(wanted: Any, *, sent: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a model. A `schema_hook` of msgspec: any other class allows all values, as `object`.

    Types that it refers to are under ``$defs`` of the result, and referred to as ``#/$defs/Name``.

    Args:
        wanted: The class.
        sent: True for what is written, if that differs from what is accepted: because of other aliases, serializers
            or computed fields.

    Raises:
        LocalError: The model has no JSON Schema.

    """
    return model_of(wanted).json_schema(sent=sent) if is_model(wanted) else dict(_ANYTHING)


class InvalidModel(ValueError):
    """A value does not match a model within another type. msgspec adds the place to its text.

    Attributes:
        mismatch: The problems, with paths that begin at the model.

    """

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__("not a valid model")
        self.mismatch = mismatch


class Model:
    """A type that pydantic reads and writes: a model, or a type of Python with models in it.

    Args:
        wanted: The type.

    Raises:
        LocalError: pydantic does not support the type.

    """

    __slots__ = ("_adapter", "_errors", "_wanted")

    def __init__(self, wanted: Any) -> None:
        import pydantic

        self._wanted = wanted
        self._errors = pydantic.ValidationError
        try:
            adapter = _adapter(wanted)
            if not adapter.pydantic_complete:
                adapter.rebuild(raise_errors=True)
        except (pydantic.PydanticUserError, TypeError, NameError) as error:
            reason = str(error).partition("\n")[0]
            raise LocalError(f"{wanted!r} is not a type that pydantic can read: {reason}") from None
        self._adapter = adapter

    def decode(self, value: Any) -> Any:
        """Return the instance for a decoded value: dicts, lists, strings and other values of JSON or MessagePack.

        Raises:
            Mismatch: The value does not match.

        """
        try:
            if _beyond_json(value):
                return self._adapter.validate_python(value)
            # A strict model accepts a date as text only from JSON.
            return self._adapter.validate_json(msgspec.json.encode(value))
        except self._errors as error:
            raise _mismatch(error, value) from None

    def hook(self, _: type, value: Any) -> Any:
        """Return the instance for a decoded value. A `dec_hook` of msgspec, which raises InvalidModel."""
        try:
            return self.decode(value)
        except Mismatch as error:
            raise InvalidModel(error) from None

    def encode(self, value: Any) -> Any:
        """Return the JSON form of an instance.

        Raises:
            ValueError: The value cannot be encoded.

        """
        return self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False)

    def json_schema(self, *, sent: bool = False) -> dict[str, Any]:
        """Return the JSON Schema; see :func:`json_schema`."""
        from pydantic import PydanticUserError

        try:
            read: dict[str, Any] = self._adapter.json_schema(mode="validation")
            written: dict[str, Any] = self._adapter.json_schema(mode="serialization") if sent else read
        except PydanticUserError as error:
            raise LocalError(f"{self._wanted!r} has no JSON Schema: {error.message}") from None
        # A type that reads what it writes has one schema: what a handler has returned can be sent back.
        schema: dict[str, Any] = _without_unwritable(read if fits(written, read) else written)
        return schema


def model_of(wanted: Any) -> Model:
    """Return how pydantic reads and writes a type.

    Raises:
        LocalError: pydantic does not support the type.

    """
    try:
        return _cached_model(wanted)
    except TypeError:
        # Some annotations cannot be hashed.
        return Model(wanted)


@lru_cache(maxsize=1_024)
def _cached_model(wanted: Any) -> Model:
    return Model(wanted)


def _without_unwritable(schema: Any) -> Any:
    """Return a schema without defaults that JSON does not have, and those of secrets, which would be asterisks."""
    if isinstance(schema, list):
        return [_without_unwritable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    default = schema.get("default")
    unwritable = schema.get("writeOnly") is True or (isinstance(default, float) and not math.isfinite(default))
    hidden = "default" if unwritable else None
    return {key: _without_unwritable(value) for key, value in schema.items() if key != hidden}


def _adapter(wanted: Any) -> Any:
    import pydantic

    try:
        # As with msgspec, bytes are base64 text in JSON.
        config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        return pydantic.TypeAdapter(wanted, config=config)
    except pydantic.PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        # A class has its own settings.
        return pydantic.TypeAdapter(wanted)


def _beyond_json(value: Any) -> bool:
    """Return True if a value contains bytes or a number that JSON does not have."""
    if isinstance(value, dict):
        return any(map(_beyond_json, value)) or any(map(_beyond_json, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_beyond_json, value))
    return isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value))


def _mismatch(error: Any, value: Any) -> Mismatch:
    """Return the problems that pydantic found in `value`, without the values themselves."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
    problems = [(pointer(_path(each, value)), each["msg"][:MAX_MESSAGE_CHARACTERS]) for each in found]
    return Mismatch(problems=problems, total=error.error_count())


def _path(problem: dict[str, Any], value: Any) -> Sequence[str | int]:
    """Return the location of a problem in `value`; that of a missing field is where it should be.

    pydantic's locations also name the members of unions, which are not in the data.
    """
    path: list[str | int] = []
    steps: tuple[str | int, ...] = problem["loc"]
    for number, step in enumerate(steps, 1):
        missing = number == len(steps) and problem["type"] == "missing"
        if isinstance(value, dict) and (missing or step in value):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            continue
        path.append(step)
    return path
