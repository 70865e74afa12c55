"""Scans MessagePack of usual form in one pass: the fields of messages, and bodies.

Everything else is left to the codec: fields that are unknown, duplicate or of another type, numbers that are not
whole, and all malformed data.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from .message cimport ACK, BODY_DEPTH, FLAGS, MAX_BIG_DIGITS, MAX_DEPTH, MAX_ID, PAYLOAD, SEQ, STREAM, TRACING, UNKNOWN
from .message cimport Bytes, Envelope, Span, digits_end, field_of, is_utf8

cdef int64_t MAX_NUMBER = (<int64_t>1 << 53) - 1


cdef bint is_msgpack_body(bytes data):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data)
    return _value(p, 0, end, BODY_DEPTH, True) == end


cdef bint msgpack_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil:
    """Find the fields of a message whose payload has at most `levels`; return False if it is malformed or unusual."""
    cdef Span name
    cdef int field, left
    if at >= end:
        return False
    if p[at] & 0xF0 == 0x80:
        left = p[at] & 0x0F
        at += 1
    elif p[at] == 0xDE and end - at >= 3:
        # Some peers write all maps in this form.
        left = p[at + 1] << 8 | p[at + 2]
        at += 3
    else:
        return False
    while left > 0:
        left -= 1
        name = _string(p, at, end)
        if name.start < 0:
            return False
        at = name.end
        field = field_of(p + name.start, at - name.start)
        if field == UNKNOWN or found.seen & 1 << field or at >= end:
            return False
        found.seen |= 1 << field
        if field == PAYLOAD or field == TRACING:
            found.text[field].start = at
            at = _value(p, at, end, levels if field == PAYLOAD else MAX_DEPTH - 1, False)
            found.text[field].end = at
        elif field == SEQ or field == ACK or field == FLAGS:
            at = _whole(p, at, end, &found.number[field])
        else:
            if field == STREAM:
                found.name = at
            found.text[field] = _string(p, at, end)
            at = found.text[field].end
            if at - found.text[field].start > MAX_ID:
                return False
        if at < 0:
            return False
    return at == end


cdef inline Span _string(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the position of the text of the string at `at`, which may be after the end; -1 if there is none."""
    cdef Py_ssize_t size
    if at >= end:
        return Span(-1, -1)
    if p[at] & 0xE0 == 0xA0:
        size = p[at] & 0x1F
        at += 1
    elif p[at] == 0xD9 and end - at >= 2:
        size = p[at + 1]
        at += 2
    elif p[at] == 0xDA and end - at >= 3:
        size = p[at + 1] << 8 | p[at + 2]
        at += 3
    else:
        return Span(-1, -1)
    return Span(at, at + size) if size <= end - at else Span(-1, -1)


cdef inline Py_ssize_t _whole(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* number) noexcept nogil:
    """Return the end of the whole number at `at`; -1 if there is none up to 2^53-1."""
    cdef unsigned char first = p[at]
    cdef uint64_t value = 0
    cdef int width, index
    at += 1
    if first < 0x80:
        value = first
    elif 0xCC <= first <= 0xCF:
        width = 1 << (first - 0xCC)
        if end - at < width:
            return -1
        for index in range(width):
            value = value << 8 | p[at + index]
        at += width
        if value > <uint64_t>MAX_NUMBER:
            return -1
    else:
        return -1
    number[0] = <int64_t>value
    return at


cdef Py_ssize_t _value(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, bint strict) noexcept nogil:
    """Return the end of the value at `at` with at most `levels`; -1 if it is malformed or unusual.

    Keys of maps must be strings of moderate size; with `strict`, all strings.
    """
    cdef unsigned char first
    cdef Py_ssize_t count
    cdef Span text
    if at >= end:
        return -1
    first = p[at]
    if 0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDA:
        text = _string(p, at, end)
        return text.end if text.start < 0 or is_utf8(p + text.start, text.end - text.start) else -1
    at += 1
    if first < 0x80 or first >= 0xE0 or first == 0xC0 or first == 0xC2 or first == 0xC3:
        return at
    if first < 0x90:
        return _values(p, at, end, first & 0x0F, levels, strict, True)
    if first < 0xA0:
        return _values(p, at, end, first & 0x0F, levels, strict, False)
    if 0xC4 <= first <= 0xC6:
        return _sized(p, at, end, 1 << (first - 0xC4))
    if 0xC7 <= first <= 0xC9:
        count = _length(p, at, end, 1 << (first - 0xC7))
        return -1 if count < 0 else _extension(p, at + (1 << (first - 0xC7)), end, count)
    if 0xD4 <= first <= 0xD8:
        return _extension(p, at, end, 1 << (first - 0xD4))
    if first == 0xCA or first == 0xCB:
        return _within(at, 4 << (first - 0xCA), end)
    if 0xCC <= first <= 0xCF:
        return _within(at, 1 << (first - 0xCC), end)
    if 0xD0 <= first <= 0xD3:
        return _within(at, 1 << (first - 0xD0), end)
    if first == 0xDB and not strict:
        count = _sized(p, at, end, 4)
        return count if count < 0 or is_utf8(p + at + 4, count - at - 4) else -1
    if 0xDC <= first <= 0xDF:
        count = _length(p, at, end, 2 << (first & 1))
        if count < 0:
            return -1
        at += 2 << (first & 1)
        return _values(p, at, end, count, levels, strict, first >= 0xDE)
    return -1


cdef Py_ssize_t _extension(Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t size) noexcept nogil:
    """Return the end of the extension whose type is at `at`, with `size` bytes of data; -1 if it may be malformed."""
    if size >= end - at:
        return -1
    # Only big integers and timestamps are checked; other extensions are up to the users.
    if p[at] == 0 and not _is_integer(p, at + 1, size):
        return -1
    if p[at] == 0xFF and not (size == 4 or (size == 8 and _is_time(p, at + 1))):
        return -1
    return at + 1 + size


cdef bint _is_integer(Bytes p, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return whether the bytes are one integer, or a string of decimal digits."""
    cdef Span text
    cdef Py_ssize_t start
    if size == 0:
        return False
    if p[at] < 0x80 or p[at] >= 0xE0:
        return size == 1
    if 0xCC <= p[at] <= 0xD3:
        return size == 1 + (1 << (p[at] & 3))
    text = _string(p, at, at + size)
    if text.start < 0 or text.end != at + size or text.end - text.start > MAX_BIG_DIGITS:
        return False
    start = text.start
    if start < text.end and p[start] == c"-":
        start += 1
    return start < text.end and digits_end(p, start, text.end) == text.end


cdef inline bint _is_time(Bytes p, Py_ssize_t at) noexcept nogil:
    """Return whether the first 30 of 64 bits are less than a second in nanoseconds."""
    return (<int64_t>p[at] << 22 | p[at + 1] << 14 | p[at + 2] << 6 | p[at + 3] >> 2) < 1000000000


cdef inline Py_ssize_t _within(Py_ssize_t at, Py_ssize_t size, Py_ssize_t end) noexcept nogil:
    return at + size if size <= end - at else -1


cdef inline Py_ssize_t _length(Bytes p, Py_ssize_t at, Py_ssize_t end, int width) noexcept nogil:
    cdef Py_ssize_t length = 0
    cdef int index
    if end - at < width:
        return -1
    for index in range(width):
        length = length << 8 | p[at + index]
    return length


cdef inline Py_ssize_t _sized(Bytes p, Py_ssize_t at, Py_ssize_t end, int width) noexcept nogil:
    cdef Py_ssize_t length = _length(p, at, end, width)
    return -1 if length < 0 else _within(at + width, length, end)


cdef Py_ssize_t _values(
    Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count, int levels, bint strict, bint keyed
) noexcept nogil:
    """Return the end of `count` values at `at`, each after a key if `keyed`; -1 if one is malformed or unusual."""
    if levels == 0:
        return -1
    while count > 0 and at >= 0:
        if keyed:
            # Only the codec knows which other keys can be decoded: not maps, nor arrays with maps, for example.
            if _string(p, at, end).start < 0:
                return -1
            at = _value(p, at, end, levels - 1, strict)
            if at < 0:
                return -1
        at = _value(p, at, end, levels - 1, strict)
        count -= 1
    return at


cdef Span msgpack_ok_payload(Bytes p, Span body) noexcept nogil:
    """Return the position of the payload in a result `{ok: true, payload}` of usual form; else -1."""
    cdef Py_ssize_t at = body.start
    # The body is known to be valid. The payload is the second of two fields, so it ends with the body.
    if body.end - at > 13 and memcmp(p + at, b"\x82\xa2ok\xc3\xa7payload", 13) == 0:
        return Span(at + 13, body.end)
    return Span(-1, -1)
