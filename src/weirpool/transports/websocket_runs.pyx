"""The compiled `websocket_runs.py`, which documents the functions."""

from os import urandom

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

__all__ = ["read_run", "write_run"]

ctypedef const unsigned char* Bytes

cdef enum:
    WHOLE = 0x82
    MASKED = 0x80
    LENGTH = 0x7F
    SHORT = 125
    LENGTH_16 = 126
    LENGTH_64 = 127
    KEY_BYTES = 4
    # Longer messages are written separately.
    LONG_BYTES = 32_768


cdef struct Frame:
    Py_ssize_t start
    Py_ssize_t end


def read_run(bytes data not None, Py_ssize_t at, bint masked, Py_ssize_t max_bytes, int width):
    if at < 0:
        raise IndexError(f"no frame begins at byte {at}")
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t first = at, size = len(data), total = 0
    cdef Frame frame = _whole(p, at, size, masked, max_bytes)
    while frame.start >= 0:
        total += width + frame.end - frame.start
        at = frame.end
        frame = _whole(p, at, size, masked, max_bytes)
    if at == first:
        return b"", at
    cdef bytes messages = PyBytes_FromStringAndSize(NULL, total)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(messages)
    cdef Py_ssize_t end = at, length
    at = first
    while at < end:
        frame = _whole(p, at, size, masked, max_bytes)
        length = frame.end - frame.start
        _put_number(to, length, width)
        to += width
        if masked:
            _mask(to, p + frame.start, length, p + frame.start - KEY_BYTES)
        else:
            memcpy(to, p + frame.start, length)
        to += length
        at = frame.end
    return messages, end


def write_run(bytes data not None, int width, bint masking):
    if not 1 <= width <= 4:
        raise ValueError(f"a length has 1 to 4 bytes, not {width}")
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data), keys = NULL
    cdef Py_ssize_t size = len(data), at = 0, total = 0, count = 0, length
    while True:
        length = _message(p, at, size, width)
        if length < 0:
            break
        at += width + length
        total += _head_bytes(length) + length
        count += 1
    if count == 0:
        return b"", 0
    cdef bytes random
    if masking:
        random = urandom(KEY_BYTES * count)
        keys = <Bytes>PyBytes_AS_STRING(random)
        total += KEY_BYTES * count
    cdef bytes frames = PyBytes_FromStringAndSize(NULL, total)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(frames)
    cdef Py_ssize_t end = at
    at = 0
    while at < end:
        length = _message(p, at, size, width)
        at += width
        to = _put_head(to, length, masking)
        if masking:
            memcpy(to, keys, KEY_BYTES)
            to += KEY_BYTES
            _mask(to, p + at, length, keys)
            keys += KEY_BYTES
        else:
            memcpy(to, p + at, length)
        to += length
        at += length
    return frames, end


cdef inline Frame _whole(Bytes p, Py_ssize_t at, Py_ssize_t size, bint masked, Py_ssize_t max_bytes) noexcept nogil:
    """Return the payload's position of the frame at `at`, if it is a valid, whole binary message; otherwise -1."""
    cdef Py_ssize_t length, start = at + 2
    cdef Frame none = Frame(-1, -1)
    if size - at < 2 or p[at] != WHOLE or p[at + 1] & MASKED != (MASKED if masked else 0):
        return none
    length = p[at + 1] & LENGTH
    if length == LENGTH_16:
        if size - at < 4:
            return none
        length = p[at + 2] << 8 | p[at + 3]
        start += 2
    elif length == LENGTH_64:
        # Lengths of more than 32 bits always exceed the limit.
        if size - at < 10 or p[at + 2] | p[at + 3] | p[at + 4] | p[at + 5]:
            return none
        length = <Py_ssize_t>p[at + 6] << 24 | p[at + 7] << 16 | p[at + 8] << 8 | p[at + 9]
        start += 8
    if masked:
        start += KEY_BYTES
    if length > max_bytes or length > size - start:
        return none
    return Frame(start, start + length)


cdef inline Py_ssize_t _message(Bytes p, Py_ssize_t at, Py_ssize_t size, int width) noexcept nogil:
    """Return the length of the message at `at`, if it is complete and not long; otherwise -1."""
    cdef Py_ssize_t length = 0
    cdef int index
    if size - at < width:
        return -1
    for index in range(width):
        length = length << 8 | p[at + index]
    return -1 if length >= LONG_BYTES or length > size - at - width else length


cdef inline int _head_bytes(Py_ssize_t length) noexcept nogil:
    """Return the number of bytes that `_put_head` writes."""
    return 2 if length <= SHORT else 4


cdef inline unsigned char* _put_head(unsigned char* to, Py_ssize_t length, bint masking) noexcept nogil:
    """Write a frame's header without its key; lengths below `LONG_BYTES` fit into 16 bits."""
    cdef unsigned char mask_bit = MASKED if masking else 0
    to[0] = WHOLE
    if length <= SHORT:
        to[1] = <unsigned char>(mask_bit | length)
        return to + 2
    to[1] = mask_bit | LENGTH_16
    _put_number(to + 2, length, 2)
    return to + 4


cdef inline void _put_number(unsigned char* to, Py_ssize_t number, int width) noexcept nogil:
    cdef int index
    for index in range(width):
        to[index] = <unsigned char>(number >> 8 * (width - 1 - index) & 0xFF)


cdef inline void _mask(unsigned char* to, Bytes what, Py_ssize_t size, Bytes key) noexcept nogil:
    """Write `what` masked, eight bytes at a time. RFC 6455, 5.3."""
    cdef uint32_t half
    cdef uint64_t mask, word
    cdef Py_ssize_t at = 0
    memcpy(&half, key, KEY_BYTES)
    mask = <uint64_t>half << 32 | half
    while size - at >= 8:
        memcpy(&word, what + at, 8)
        word ^= mask
        memcpy(to + at, &word, 8)
        at += 8
    while at < size:
        to[at] = what[at] ^ key[at & 3]
        at += 1
