"""Errors with a name and typed extras, as River has them."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import msgspec

from ..errors import ApplicationError, LocalError, Mismatch
from .converter import Converter
from .formats import JSON, MSGPACK, Format

__all__ = ["RESERVED", "TypedError", "named_error"]

RESERVED = ("UNCAUGHT_ERROR", "UNEXPECTED_DISCONNECT", "INVALID_REQUEST", "CANCEL")
"""River, Clients, servers, and RPCs: codes that every procedure may fail with, and that no application may define."""


class TypedError(ApplicationError):
    """An error of an application, known by a word, with extras of a type of its own.

    Subclass it; a handler raises it, and a :class:`~penstock.TypedPeer` that is told of it raises it anew::

        class Unknown(TypedError, code="UNKNOWN_SYMBOL"):
            '''There is no such symbol.'''

            extras: Symbol

    Without an annotation of `extras` there are none. River has a place for all three; where codes are numbers, the code
    is APPLICATION_ERROR, and what travels as the error's data is the JSON object ``{"code", "message", "extras"}``.

    Args:
        message: A text for people. It travels, so it must hold no secret.
        extras: More about it, for programs.

    Attributes:
        NAME: The word.

    """

    NAME: ClassVar[str] = ""
    extras: Any = None

    def __init_subclass__(cls, *, code: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if not code or code in RESERVED:
            raise LocalError(
                f"{cls.__name__} has the code {code!r}; choose a word that is none of {', '.join(RESERVED)}"
            )
        cls.NAME = code

    def __init__(self, message: str = "", extras: Any = None) -> None:
        if not self.NAME:
            raise LocalError("TypedError is to be subclassed: class Unknown(TypedError, code='UNKNOWN')")
        body: dict[str, Any] = {"code": self.NAME, "message": message}
        if extras is not None:
            body["extras"] = extras
        super().__init__(self.NAME, message, Converter.encode(JSON, body))
        self.extras = extras

    @classmethod
    def extras_type(cls) -> Any:
        """Return the type of the extras; None when it has none.

        Raises:
            LocalError: Its annotation cannot be read at run time.

        """
        for base in cls.__mro__:
            if base is TypedError:
                break
            try:
                annotation = inspect.get_annotations(base, eval_str=True).get("extras")
            except NameError as error:
                raise LocalError(f"{base.__name__}.extras is annotated by what cannot be found: {error}") from None
            if annotation is not None:
                return annotation
        return None


class _Body(msgspec.Struct):
    """What is common to all errors that travel by a name: River's BaseError; its document says `extra`."""

    code: str
    message: str = ""
    extras: msgspec.Raw = msgspec.Raw()
    extra: msgspec.Raw = msgspec.Raw()


_BODY = Converter(_Body)


def named_error(error: ApplicationError, classes: dict[str, type[TypedError]], form: Format) -> ApplicationError:
    """Return the error of one of `classes` that `error` travelled as; itself where it is none of them.

    Args:
        error: What came.
        classes: By their names.
        form: How data is encoded on the connection.

    """
    try:
        named = _by_word(error, classes, form) if isinstance(error.code, str) else _by_body(error, classes)
    except Mismatch:
        return error
    if named is None:
        return error
    named.data, named.metadata = error.data, error.metadata
    return named


def _by_word(error: ApplicationError, classes: dict[str, type[TypedError]], form: Format) -> TypedError | None:
    """Return an error of a protocol whose codes are words: its data are the extras, if there are any."""
    cls = classes.get(str(error.code))
    if cls is None:
        return None
    wanted = cls.extras_type()
    told = error.data != error.message.encode()
    return cls(error.message, Converter(wanted).decode(form, error.data) if told and wanted is not None else None)


def _by_body(error: ApplicationError, classes: dict[str, type[TypedError]]) -> TypedError | None:
    """Return an error of the others: its data has the word, too."""
    # An object in JSON begins with a brace; in msgpack never.
    form = JSON if error.data[:1] == b"{" else MSGPACK
    body: _Body = _BODY.decode(form, error.data)
    cls = classes.get(body.code)
    if cls is None:
        return None
    raw, wanted = bytes(body.extras) or bytes(body.extra), cls.extras_type()
    return cls(body.message, Converter(wanted).decode(form, raw) if raw and wanted is not None else None)
