"""The size of an Arrow IPC message when its body is decompressed, read from its header.

Arrow allocates what a compressed buffer claims, so the claims are added up before it is asked to decompress any.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

__all__ = ["batch_size"]

_SHORT: Final = struct.Struct("<H").unpack_from
_INT: Final = struct.Struct("<i").unpack_from
_LONG: Final = struct.Struct("<q").unpack_from
_BUFFER: Final = struct.Struct("<qq").unpack_from
_BUFFER_BYTES: Final = 16

# Indices of fields in the tables of Arrow's Message.fbs.
_HEADER_TYPE: Final = 1
_HEADER: Final = 2
_DICTIONARY_BATCH: Final = 2
_DICTIONARY_DATA: Final = 1
_LENGTH: Final = 0
_BUFFERS: Final = 2
_COMPRESSION: Final = 3


def batch_size(message: pa.ipc.Message) -> tuple[int, int]:
    """Return the rows that a record batch or dictionary claims, and the bytes of its decompressed body.

    Raises `ValueError` if its header is inconsistent.
    """
    header, body = memoryview(message.metadata), memoryview(message.body or b"")
    try:
        batch = _target(header, _field(header, _target(header, 0), _HEADER))
        if header[_field(header, _target(header, 0), _HEADER_TYPE)] == _DICTIONARY_BATCH:
            batch = _target(header, _field(header, batch, _DICTIONARY_DATA))
        at = _field(header, batch, _LENGTH)
        rows = _LONG(header, at)[0] if at else 0
        if not _field(header, batch, _COMPRESSION):
            return rows, len(body)
        return rows, sum(_claims(header, batch, body))
    except (struct.error, IndexError) as error:
        raise ValueError("an Arrow message has an inconsistent header") from error


def _claims(header: memoryview, batch: int, body: memoryview) -> Iterator[int]:
    """Yield the bytes that each buffer of a compressed batch claims to have."""
    vector = _target(header, _field(header, batch, _BUFFERS))
    for index in range(_INT(header, vector)[0]):
        offset, length = _BUFFER(header, vector + 4 + index * _BUFFER_BYTES)
        if length:
            claim = _LONG(body, offset)[0]
            # -1: this buffer is not compressed.
            yield length if claim == -1 else claim
            if claim < -1:
                raise ValueError("a compressed buffer has a negative size")


def _target(data: memoryview, at: int) -> int:
    """Return the offset that the reference at `at` points to."""
    return at + int(_INT(data, at)[0])


def _field(data: memoryview, table: int, index: int) -> int:
    """Return the offset of a table's field; 0 if it is absent."""
    vtable = table - _INT(data, table)[0]
    entry = 4 + 2 * index
    offset = _SHORT(data, vtable + entry)[0] if entry < _SHORT(data, vtable)[0] else 0
    return table + offset if offset else 0
