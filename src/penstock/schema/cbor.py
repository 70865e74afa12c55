"""CBOR for typed data, as Spring's Jackson writes and reads it: the counterpart of :mod:`msgspec.json`.

Written are bytes as bytes, and times, UUIDs and decimals as texts. Read are also UUIDs as 16 bytes, decimal fractions,
and times as CBOR's tags.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from ..cbor import cbor_reader
from ..depth import cbor_too_deep
from ..errors import LocalError

__all__ = ["Decoder", "Encoder"]

logger = logging.getLogger("penstock.schema")

MISSING: Final = "CBOR needs the package cbor2; run: pip install 'penstock[cbor]'"
_NATIVE: Final = (bytes, bytearray, memoryview)
"""Types that CBOR has, and JSON does not."""


class Encoder:
    """Encodes values.

    Args:
        enc_hook: Returns a supported value for one of another type, as for msgspec's encoders.

    """

    def __init__(self, *, enc_hook: Callable[[Any], Any] | None = None) -> None:
        self._enc_hook = enc_hook

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value.

        Raises:
            LocalError: The package cbor2 is not installed.

        """
        try:
            from cbor2 import dumps
        except ImportError:
            raise LocalError(MISSING) from None
        # As in JSON, keys are texts, which Jackson also reads as numbers.
        plain = msgspec.to_builtins(value, builtin_types=_NATIVE, str_keys=True, enc_hook=self._enc_hook)
        data: bytes = dumps(plain)
        return data


class Decoder:
    """Decodes values of one type, strictly.

    Args:
        wanted: The type.
        strict: As for msgspec's decoders.
        dec_hook: Converts a value to a type that msgspec does not support, as for msgspec's decoders.

    Raises:
        TypeError: msgspec does not support the type.

    """

    def __init__(
        self, wanted: Any = Any, *, strict: bool = True, dec_hook: Callable[[type, Any], Any] | None = None
    ) -> None:
        # Refuses types that msgspec does not support.
        msgspec.msgpack.Decoder(wanted, dec_hook=dec_hook)
        self._wanted = wanted
        self._strict = strict
        self._dec_hook = dec_hook

    def decode(self, data: bytes) -> Any:
        """Return the value. Nothing is built of data that is nested too deeply: see :func:`cbor_too_deep`.

        Raises:
            msgspec.DecodeError: The data is not CBOR, or is refused; or the package cbor2 is not installed, which is
                logged as well, because a peer that is told so cannot install it.

        """
        if cbor_too_deep(data) >= 0:
            raise msgspec.DecodeError("it is nested too deeply")
        try:
            value = _reader()(data)
        except ImportError:
            logger.error("a peer sent CBOR, which cannot be read: %s", MISSING)
            raise msgspec.DecodeError("this side cannot read CBOR; send JSON or MessagePack") from None
        except ValueError as error:
            raise msgspec.DecodeError(str(error)) from None
        return msgspec.convert(
            value,
            self._wanted,
            builtin_types=(bytes,),
            str_keys=True,
            strict=self._strict,
            dec_hook=self._dec_hook,
        )


@cache
def _reader() -> Callable[[bytes], Any]:
    return cbor_reader(text_keys=False)
