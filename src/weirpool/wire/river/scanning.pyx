"""Decodes River messages of usual form in one pass; `scanning.py` documents the functions.

`scanning_json` or `scanning_msgpack` finds the fields, from which a message is made here. Unusual messages are left
to the codec. Tests compare the results to those of the codec.
"""

from typing import Any

import msgspec

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.string cimport memcmp

from .message cimport ACK, BODY_DEPTH, FLAGS, FROM, ID, NEEDED, PAYLOAD, PROCEDURE, SEQ, SERVICE, STREAM, TO, TRACING
from .message cimport Bytes, Envelope, Message, Span
from .scanning_json cimport is_json_body, json_envelope, json_ok_payload
from .scanning_msgpack cimport is_msgpack_body, msgpack_envelope, msgpack_ok_payload

__all__ = ["is_body", "scan"]

cdef object FROM_JSON = msgspec.json.Decoder(dict[str, Any]).decode
cdef object FROM_MSGPACK = msgspec.msgpack.Decoder(dict[str, Any]).decode


cpdef Message scan(
    bytes buffer, Py_ssize_t start, Py_ssize_t end, bint json, bint results, str from_="", str to=""
):
    cdef Envelope found
    if start < 0 or end > len(buffer):
        raise IndexError(f"bytes {start} to {end} of {len(buffer)}")
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(buffer)
    # A result adds one level to a body.
    cdef int levels = BODY_DEPTH + 1 if results else BODY_DEPTH
    found.seen = 0
    if json:
        if not json_envelope(p, start, end, levels, &found):
            return None
    elif not msgpack_envelope(p, start, end, levels, &found):
        return None
    if found.seen & NEEDED != NEEDED:
        return None
    cdef Message message = Message.__new__(Message)
    cdef Span body = found.text[PAYLOAD], inner
    try:
        message.id = _text(p, found.text[ID])
        message.from_ = _known(p, found.text[FROM], from_)
        message.to = _known(p, found.text[TO], to)
        message.stream_id = _text(p, found.text[STREAM])
        if found.seen & 1 << SERVICE:
            message.service_name = _text(p, found.text[SERVICE])
        if found.seen & 1 << PROCEDURE:
            message.procedure_name = _text(p, found.text[PROCEDURE])
        if found.seen & 1 << TRACING:
            message.tracing = (FROM_JSON if json else FROM_MSGPACK)(_cut(p, found.text[TRACING]))
    except (UnicodeDecodeError, msgspec.DecodeError):
        return None
    message.encoded = _cut(p, Span(found.name, found.text[STREAM].end + (1 if json else 0)))
    message.seq = found.number[SEQ]
    message.ack = found.number[ACK]
    message.control_flags = found.number[FLAGS]
    message.payload = b""
    if results:
        inner = json_ok_payload(p, body) if json else msgpack_ok_payload(p, body)
        if inner.start >= 0:
            message.ok_payload = _cut(p, inner)
            return message
    message.payload = _cut(p, body)
    return message


cpdef bint is_body(bytes data, bint json):
    return is_json_body(data) if json else is_msgpack_body(data)


cdef inline str _text(Bytes p, Span span):
    return PyUnicode_DecodeUTF8(<const char*>p + span.start, span.end - span.start, NULL)


cdef inline str _known(Bytes p, Span span, str known):
    """Return the text; `known` if it is equal, as in nearly all messages."""
    cdef Py_ssize_t size
    cdef const char* text = PyUnicode_AsUTF8AndSize(known, &size)
    if size == span.end - span.start and memcmp(text, p + span.start, size) == 0:
        return known
    return _text(p, span)


cdef inline bytes _cut(Bytes p, Span span):
    return PyBytes_FromStringAndSize(<const char*>p + span.start, span.end - span.start)
