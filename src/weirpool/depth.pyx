"""The compiled `depth.py`, which documents the functions. A property test compares both."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint64_t

__all__ = [
    "MAX_DEPTH",
    "cbor_too_deep",
    "count_cbor",
    "count_msgpack",
    "json_too_deep",
    "msgpack_too_deep",
    "skip_cbor",
    "skip_json",
    "skip_msgpack",
]

MAX_DEPTH = 128

cdef enum:
    # The capacity of the stack in `_too_deep`.
    LEVELS = 256
    # What follows a scalar of CBOR.
    NOTHING = -1
    ENDLESS = -2
    ARRAY_BYTES = 4


def json_too_deep(bytes data not None, Py_ssize_t limit=MAX_DEPTH):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t at = 0, end = len(data), depth = 0, openers = 0
    # The compiler vectorizes this loop, and most data needs no other.
    for at in range(end):
        openers += (p[at] == c"{") | (p[at] == c"[")
    if openers <= limit:
        return -1
    at = 0
    while at < end:
        if p[at] == c'"':
            at = _string_end(p, at, end)
            continue
        if p[at] == c"{" or p[at] == c"[":
            depth += 1
            if depth > limit:
                return at
        elif (p[at] == c"}" or p[at] == c"]") and depth:
            depth -= 1
        at += 1
    return -1


def msgpack_too_deep(bytes data not None, Py_ssize_t limit=MAX_DEPTH):
    if not 0 <= limit < LEVELS - 1:
        raise ValueError(f"the depth limit is {limit}; it must be between 0 and {LEVELS - 2}")
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t at, end = len(data), openers = 0
    for at in range(end):
        openers += ((p[at] & 0xE0) == 0x80) | ((p[at] & 0xFC) == 0xDC)
    return -1 if openers <= limit else _too_deep(p, end, limit)


def skip_json(bytes data not None, Py_ssize_t at):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data), depth = 0
    if at < 0:
        raise IndexError(f"no value begins at byte {at}")
    while at < end:
        if p[at] == c'"':
            at = _string_end(p, at, end)
            if at > end:
                return -1
        elif p[at] == c"{" or p[at] == c"[":
            depth += 1
            at += 1
        elif p[at] == c"}" or p[at] == c"]":
            depth -= 1
            at += 1
        elif p[at] == c",":
            if depth == 0:
                return -1
            at += 1
        else:
            while at < end and not _is_mark(p[at]):
                at += 1
        if depth <= 0:
            return at if depth == 0 else -1
    return -1


def skip_msgpack(bytes data not None, Py_ssize_t at, Py_ssize_t count=1):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data)
    cdef int64_t inner
    if at < 0:
        raise IndexError(f"no value begins at byte {at}")
    while count > 0:
        # Each value has at least one byte.
        if count > end - at:
            return -1
        at = after_msgpack(p, at, end, &inner)
        count += (inner if inner > 0 else 0) - 1
    return at if at <= end else -1


def count_msgpack(bytes data not None):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t at = 0, end = len(data), count = 0
    cdef int64_t inner
    while at < end:
        at = after_msgpack(p, at, end, &inner)
        count += 2 if inner >= 0 else 1
    return count


def cbor_too_deep(bytes data not None, Py_ssize_t limit=MAX_DEPTH, bint nested_keys=False):
    if not 0 <= limit < LEVELS - 1:
        raise ValueError(f"the depth limit is {limit}; it must be between 0 and {LEVELS - 2}")
    return _cbor_too_deep(<Bytes>PyBytes_AS_STRING(data), len(data), limit, nested_keys)


def skip_cbor(bytes data not None, Py_ssize_t at):
    if at < 0:
        raise IndexError(f"no value begins at byte {at}")
    return _cbor_end(<Bytes>PyBytes_AS_STRING(data), at, len(data))


def count_cbor(bytes data not None):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t at = 0, end = len(data), count = 0, start
    cdef int64_t inner
    cdef bint typed = False
    while at < end:
        start = at
        at = after_cbor(p, at, end, &inner)
        count += 1 if inner == NOTHING else 2
        if p[start] >> 5 == 2:
            count += (min(at, end) - start) // ARRAY_BYTES if typed else 0
        else:
            typed = p[start] >> 5 == 6 and 65 <= _argument(p, start, end) <= 87
    return count


cdef Py_ssize_t _cbor_too_deep(Bytes p, Py_ssize_t end, Py_ssize_t limit, bint nested_keys) noexcept nogil:
    """Return the first offset at which the nesting exceeds `limit`, or a key is nested; or -1."""
    # Values that remain at each level, negative in those without a length; and whether it is a map.
    cdef int64_t remaining[LEVELS]
    cdef bint maps[LEVELS]
    cdef int64_t inner, left
    cdef Py_ssize_t at = 0, depth = 0, start
    cdef bint key
    remaining[0] = -1
    maps[0] = False
    while at < end:
        left = remaining[depth]
        if left == 0:
            depth -= 1
            continue
        if p[at] == 0xFF:
            if depth > 0:
                depth -= 1
            at += 1
            continue
        key = not nested_keys and maps[depth] and (left & 1) == 0
        remaining[depth] = left - 1
        start = at
        at = after_cbor(p, at, end, &inner)
        if inner != NOTHING:
            if (key and (p[start] >> 5) > 3) or depth >= limit:
                return start
            depth += 1
            remaining[depth] = inner
            maps[depth] = (p[start] >> 5) == 5
    return -1


cdef Py_ssize_t _cbor_end(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the end of the well-formed value at `at`; -1 if there is none."""
    cdef int64_t remaining[LEVELS]
    cdef bint maps[LEVELS]
    cdef int64_t inner, left
    cdef Py_ssize_t depth = 0
    cdef unsigned char major, info
    remaining[0] = 1
    maps[0] = False
    while True:
        while depth >= 0 and remaining[depth] == 0:
            depth -= 1
        if depth < 0:
            return at
        if at >= end:
            return -1
        left = remaining[depth]
        if p[at] == 0xFF:
            # A break ends a container without a length, and no pair of a map in its middle.
            if left > 0 or (maps[depth] and (left & 1)):
                return -1
            depth -= 1
            at += 1
            continue
        major, info = p[at] >> 5, p[at] & 31
        if 28 <= info and (info < 31 or major < 2 or major > 5):
            return -1
        if p[at] == 0xF8 and at + 1 < end and p[at + 1] < 32:
            return -1
        remaining[depth] = left - 1
        at = after_cbor(p, at, end, &inner)
        if at > end or (inner != NOTHING and depth + 1 >= LEVELS):
            return -1
        if inner != NOTHING:
            depth += 1
            remaining[depth] = inner
            maps[depth] = major == 5


cdef inline uint64_t _argument(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the number in the head of the value at `at`: of fewer bytes if the data ends."""
    cdef unsigned char info = p[at] & 31
    cdef uint64_t number = 0
    cdef Py_ssize_t index
    if not 24 <= info <= 27:
        return info
    for index in range(at + 1, at + 1 + (1 << (info - 24))):
        if index < end:
            number = number << 8 | p[index]
    return number


cdef Py_ssize_t after_cbor(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* inner) noexcept nogil:
    """Return the end of the scalar at `at`, with `inner` -1; or the start of a container's `inner` values.

    It is more than `end` if the data ends earlier.
    """
    cdef unsigned char major = p[at] >> 5, info = p[at] & 31
    cdef uint64_t number = _argument(p, at, end)
    cdef uint64_t most = <uint64_t>1 << 48
    at += 1 + (1 << (info - 24) if 24 <= info <= 27 else 0)
    inner[0] = NOTHING
    if major == 6:
        inner[0] = 1
        return at
    if info == 31 and 2 <= major <= 5:
        inner[0] = ENDLESS
        return at
    if 2 <= major <= 3:
        # No further than behind the end, so that the sum does not overflow.
        return end + 1 if at > end or number > <uint64_t>(end - at) else at + <Py_ssize_t>number
    if 4 <= major <= 5:
        if number > most:
            number = most
        inner[0] = <int64_t>(number if major == 4 else 2 * number)
    return at


cdef inline bint _is_mark(unsigned char byte) noexcept nogil:
    return (
        byte == c'"' or byte == c"," or byte == c"{" or byte == c"[" or byte == c"}" or byte == c"]"
    )


cdef inline Py_ssize_t _string_end(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the end of the string at `at`; more than `end` if it is not terminated."""
    at += 1
    while at < end and p[at] != c'"':
        at += 2 if p[at] == c"\\" else 1
    return at + 1


cdef Py_ssize_t _too_deep(Bytes p, Py_ssize_t end, Py_ssize_t limit) noexcept nogil:
    """Return the first offset at which the nesting exceeds `limit`, or -1."""
    # Values that remain at each level; the top level is unlimited.
    cdef int64_t remaining[LEVELS]
    cdef int64_t inner
    cdef Py_ssize_t at = 0, depth = 0
    remaining[0] = -1
    while at < end:
        if remaining[depth] == 0:
            depth -= 1
            continue
        remaining[depth] -= 1
        at = after_msgpack(p, at, end, &inner)
        if inner >= 0:
            depth += 1
            if depth > limit:
                return at
            remaining[depth] = inner
    return -1


cdef Py_ssize_t after_msgpack(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* inner) noexcept nogil:
    """Return the end of the scalar at `at`, with `inner` -1; or the start of a container's `inner` values."""
    cdef unsigned char first = p[at]
    cdef Py_ssize_t width
    at += 1
    inner[0] = -1
    if first < 0x80 or first >= 0xE0:
        return at
    if first < 0x90:
        inner[0] = 2 * (first & 0x0F)
        return at
    if first < 0xA0:
        inner[0] = first & 0x0F
        return at
    if first < 0xC0:
        return at + (first & 0x1F)
    if 0xC4 <= first <= 0xC6:
        width = 1 << (first - 0xC4)
        return at + width + _number(p, at, end, width)
    if 0xC7 <= first <= 0xC9:
        width = 1 << (first - 0xC7)
        return at + width + _number(p, at, end, width) + 1
    if 0xCA <= first <= 0xCB:
        return at + (4 << (first - 0xCA))
    if 0xCC <= first <= 0xD3:
        return at + (1 << (first & 3))
    if 0xD4 <= first <= 0xD8:
        return at + 1 + (1 << (first - 0xD4))
    if 0xD9 <= first <= 0xDB:
        width = 1 << (first - 0xD9)
        return at + width + _number(p, at, end, width)
    if first >= 0xDC:
        width = 2 << (first & 1)
        inner[0] = _number(p, at, end, width)
        if first >= 0xDE:
            inner[0] *= 2
        return at + width
    # nil, false, true, and the unused byte 0xC1.
    return at


cdef inline int64_t _number(Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t width) noexcept nogil:
    """Return the big-endian number of `width` bytes, or of fewer if the data ends."""
    cdef int64_t number = 0
    cdef Py_ssize_t index
    for index in range(width):
        if at + index < end:
            number = number << 8 | p[at + index]
    return number
