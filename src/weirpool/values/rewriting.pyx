"""The compiled `rewriting.py`, which documents the functions. A property test compares both."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from weirpool.depth cimport Bytes, after_cbor, after_msgpack

__all__ = ["usual_cbor", "usual_msgpack"]


def usual_msgpack(bytes data not None, bint undefined):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data), at = 0, start, kept = 0, size = 0, number
    cdef int64_t inner
    # What replaces a value is not longer than it.
    cdef bytes found = PyBytes_FromStringAndSize(NULL, end)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(found)
    while at < end:
        start = at
        at = after_msgpack(p, at, end, &inner)
        if at > end:
            break
        number = _nanoseconds(p, start, at)
        if number > 0:
            memcpy(to + size, p + kept, at - kept)
            _floor(to + size + number - kept, p[start] == 0xD7)
            size += at - kept
            kept = at
        elif undefined and at - start == 3 and p[start] == 0xD4 and p[start + 1] == 0 and p[start + 2] == 0:
            memcpy(to + size, p + kept, start - kept)
            size += start - kept
            to[size] = 0xC0
            size += 1
            kept = at
    if kept == 0:
        return data
    memcpy(to + size, p + kept, end - kept)
    return found[: size + end - kept]


cdef inline Py_ssize_t _nanoseconds(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the offset of a timestamp's nanoseconds; 0 if the value is not a timestamp that has some."""
    if end - at == 10 and p[at] == 0xD7 and p[at + 1] == 0xFF:
        return at + 2
    return at + 3 if end - at == 15 and p[at] == 0xC7 and p[at + 2] == 0xFF else 0


cdef void _floor(unsigned char* p, bint short) noexcept nogil:
    """Remove the nanoseconds beyond the microsecond from a number of 30 or 32 bits."""
    cdef uint32_t word = <uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3]
    cdef uint32_t rest = (word >> 2) % 1_000 << 2 if short else word % 1_000
    word -= rest
    p[0], p[1], p[2], p[3] = word >> 24, word >> 16 & 0xFF, word >> 8 & 0xFF, word & 0xFF


def usual_cbor(bytes data not None):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data), at = 0
    cdef int64_t inner
    cdef bytes found = data
    cdef unsigned char* to = NULL
    while at < end:
        if p[at] == 0xF7:
            if to == NULL:
                # Python shares objects of one byte that are made from bytes.
                found = PyBytes_FromStringAndSize(NULL, end)
                to = <unsigned char*>PyBytes_AS_STRING(found)
                memcpy(to, p, end)
            to[at] = 0xF6
        at = after_cbor(p, at, end, &inner)
    return found
