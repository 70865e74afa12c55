"""Errors with a name and typed extras, as in River."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Final

import msgspec

from ..errors import ApplicationError, LocalError, Mismatch
from ..texts import shown_line
from .converter import Converter
from .formats import JSON, MSGPACK, Format
from .models import encode as encode_model

__all__ = ["RESERVED", "TypedError", "body_of", "is_code", "named_error", "read_body"]

RESERVED = ("UNCAUGHT_ERROR", "UNEXPECTED_DISCONNECT", "INVALID_REQUEST", "CANCEL")
"""River, Clients, servers, and RPCs: codes that every procedure may fail with, reserved for the protocol."""
MAX_CODE_CHARACTERS: Final = 256


_BYTES: Final = (bytes, bytearray, memoryview)


class TypedError(ApplicationError):
    """An application's error with a code and typed extras.

    Subclass it. A handler raises it, and a :class:`~weirpool.TypedPeer` that lists it raises the same error::

        class Unknown(TypedError, code="UNKNOWN_SYMBOL"):
            '''There is no such symbol.'''

            extras: Symbol

    Without an annotation of `extras` there are none. River sends all three fields. In protocols with numeric codes, the
    code is APPLICATION_ERROR, and the error's data is the JSON object ``{"code", "message", "extras"}``.

    Args:
        message: A text for people. It is sent to the peer, so it must not contain secrets.
        extras: Further information for programs.

    Attributes:
        NAME: The code of the class.

    Raises:
        LocalError: The code is invalid, `extras` cannot be encoded, or TypedError itself is instantiated.

    """

    NAME: ClassVar[str] = ""
    extras: Any = None

    def __init_subclass__(cls, *, code: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if not is_code(code):
            raise LocalError(f"{cls.__name__} has the code {code!r}; choose a word other than {', '.join(RESERVED)}")
        cls.NAME = code

    def __init__(self, message: str = "", extras: Any = None) -> None:
        if not self.NAME:
            raise LocalError("TypedError must be subclassed, as in class Unknown(TypedError, code='UNKNOWN')")
        encoded = b"" if extras is None else Converter.encode(JSON, extras)
        super().__init__(self.NAME, message, body_of(self.NAME, message, encoded))
        self.extras = extras

    def extras_as_builtins(self) -> Any:
        """Return the extras as dicts, lists and other built-in values; bytes stay bytes.

        Raises:
            TypeError: They cannot be encoded.

        """
        return msgspec.to_builtins(self.extras, builtin_types=_BYTES, str_keys=True, enc_hook=encode_model)

    @classmethod
    def extras_type(cls) -> Any:
        """Return the type of the extras; None if there are none.

        Raises:
            LocalError: The annotation cannot be resolved at run time.

        """
        for base in cls.__mro__:
            if base is TypedError:
                break
            try:
                annotation = inspect.get_annotations(base, eval_str=True).get("extras")
            except NameError as error:
                raise LocalError(f"the annotation of {base.__name__}.extras cannot be resolved: {error}") from None
            if annotation is not None:
                return annotation
        return None


def is_code(text: str) -> bool:
    """Return True if an application's error may have this code: a short line that is not one of the protocol's."""
    return 0 < len(text) <= MAX_CODE_CHARACTERS and text == shown_line(text) and text not in RESERVED


def body_of(code: str, message: str, extras: bytes = b"") -> bytes:
    """Return the data of a named error in a protocol with numeric codes.

    Args:
        code: The code.
        message: The text for people.
        extras: The extras as JSON; empty if there are none.

    """
    fields: dict[str, Any] = {"code": code, "message": message}
    return msgspec.json.encode(fields | ({"extras": msgspec.Raw(extras)} if extras else {}))


def read_body(data: bytes) -> tuple[str, str, bytes] | None:
    """Return the code, message and extras in the data of a named error; None if it is that of another error.

    The extras are JSON, and empty if there are none. This is the inverse of :func:`body_of`.
    """
    try:
        body: _Body = _BODY.decode(JSON, data)
    except Mismatch:
        return None
    return (body.code, body.message, bytes(body.extras) or bytes(body.extra)) if body.code else None


class _Body(msgspec.Struct):
    """The fields of all named errors: River's BaseError; its document says `extra`."""

    code: str
    message: str = ""
    extras: msgspec.Raw = msgspec.Raw()
    extra: msgspec.Raw = msgspec.Raw()


_BODY = Converter(_Body)


def named_error(error: ApplicationError, classes: dict[str, type[TypedError]], form: Format) -> ApplicationError:
    """Return the typed error, of one of `classes`, that `error` represents; `error` itself if there is none.

    Args:
        error: The received error.
        classes: The classes by their codes.
        form: The encoding of the connection's data.

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
    """Return an error for a protocol whose codes are strings: its data is the extras, if there are any."""
    cls = classes.get(str(error.code))
    if cls is None:
        return None
    wanted = cls.extras_type()
    has_extras = error.data != error.message.encode()
    return cls(error.message, Converter(wanted).decode(form, error.data) if has_extras and wanted is not None else None)


def _by_body(error: ApplicationError, classes: dict[str, type[TypedError]]) -> TypedError | None:
    """Return an error for the other protocols: its data includes the code."""
    # A JSON object starts with a brace; a msgpack object never does.
    form = JSON if error.data[:1] == b"{" else MSGPACK
    body: _Body = _BODY.decode(form, error.data)
    cls = classes.get(body.code)
    if cls is None:
        return None
    raw, wanted = bytes(body.extras) or bytes(body.extra), cls.extras_type()
    return cls(body.message, Converter(wanted).decode(form, raw) if raw and wanted is not None else None)
