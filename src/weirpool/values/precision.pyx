"""The compiled `precision.py`, which documents the functions. A property test compares both."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint32_t
from libc.string cimport memchr, memcmp

__all__ = ["contains", "has_finer_time"]

ctypedef const unsigned char* Bytes

cdef const char* NINES = "999999"


def contains(tuple words not None, bytes data not None):
    cdef bytes word
    for word in words:
        if _has(<Bytes>PyBytes_AS_STRING(data), len(data), <Bytes>PyBytes_AS_STRING(word), len(word)):
            return True
    return has_finer_time(data)


def has_finer_time(bytes data not None):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data)
    if _has_finer_text(p, end):
        return True
    # No text contains this byte.
    return _find(p, 0, end, 0xFF) >= 0 and (_has_finer_timestamp(p, end, 0xD7) or _has_finer_timestamp(p, end, 0xC7))


cdef bint _has(Bytes p, Py_ssize_t end, Bytes word, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t at = _find(p, 0, end, word[0])
    while 0 <= at <= end - size:
        if memcmp(p + at, word, size) == 0:
            return True
        at = _find(p, at + 1, end, word[0])
    return False


cdef bint _has_finer_text(Bytes p, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t at = _find(p, 0, end, c".")
    while at >= 0:
        if _is_finer(p, at, end):
            return True
        at = _find(p, at + 1, end, c".")
    return False


cdef Py_ssize_t _find(Bytes p, Py_ssize_t at, Py_ssize_t end, int byte) noexcept nogil:
    """Return the offset of the next such byte; -1 if there is none."""
    cdef const void* found = memchr(p + at, byte, end - at) if at < end else NULL
    return -1 if found == NULL else <Bytes>found - p


cdef bint _is_finer(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return True if too many digits follow the point at `at`."""
    cdef Py_ssize_t behind = _digits(p, at + 1, end, 1)
    cdef Py_ssize_t after = at + 1 + behind
    if behind < 7:
        return False
    if at >= 3 and p[at - 3] == c":" and _is_digit(p[at - 2]) and _is_digit(p[at - 1]):
        return True
    if after < end and (p[after] == c"S" or p[after] == c"s"):
        return True
    return (behind >= 9 or memcmp(p + at + 1, NINES, 6) == 0) and _digits(p, at - 1, end, -1) >= 9


cdef Py_ssize_t _digits(Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t step) noexcept nogil:
    """Return how many digits follow each other."""
    cdef Py_ssize_t count = 0
    while 0 <= at < end and _is_digit(p[at]):
        at += step
        count += 1
    return count


cdef inline bint _is_digit(unsigned char byte) noexcept nogil:
    return c"0" <= byte <= c"9"


cdef bint _has_finer_timestamp(Bytes p, Py_ssize_t end, unsigned char first) noexcept nogil:
    """Return True if there is such a timestamp whose first byte is `first`."""
    cdef Py_ssize_t at = 0, number, index
    cdef uint32_t nanoseconds
    while True:
        at = _find(p, at, end, first)
        if at < 0:
            return False
        # Ten or more bytes of a timestamp of 64 bits, seven or more of one of 96 bits.
        if first == 0xD7:
            number = at + 2 if end - at >= 10 and p[at + 1] == 0xFF else -1
        else:
            number = at + 3 if end - at >= 7 and p[at + 1] == 0x0C and p[at + 2] == 0xFF else -1
        if number >= 0:
            nanoseconds = 0
            for index in range(number, number + 4):
                nanoseconds = nanoseconds << 8 | p[index]
            if (nanoseconds >> 2 if first == 0xD7 else nanoseconds) % 1_000:
                return True
        at += 1
