"""Scans JSON of usual form in one pass: the fields of messages, and bodies.

Everything else is left to the codec: escapes and white space outside of bodies, fields that are unknown, duplicate
or of another type, numbers that are not whole, and all malformed data.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from .message cimport ACK, BODY_DEPTH, FLAGS, MAX_DEPTH, MAX_ID, PAYLOAD, SEQ, STREAM, TRACING, UNKNOWN
from .message cimport Bytes, Envelope, Span, digits_end, field_of, is_utf8

cdef enum:
    MAX_DIGITS = 20

cdef int64_t MAX_NUMBER = (<int64_t>1 << 53) - 1


cdef bint is_json_body(bytes data):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data)
    return _value(p, 0, end, BODY_DEPTH) == end and is_utf8(p, end) and not _has_wrapper(p, end)


cdef bint json_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil:
    """Find the fields of a message whose payload has at most `levels`; return False if it is malformed or unusual."""
    cdef Py_ssize_t start
    cdef int field
    if at >= end or p[at] != c"{":
        return False
    while True:
        # A field begins with a quote, a name, a quote and a colon.
        at += 1
        if at >= end or p[at] != c'"':
            return False
        start = at + 1
        at = _plain(p, start, end)
        if at < 0 or at + 2 >= end or p[at + 1] != c":":
            return False
        field = field_of(p + start, at - start)
        at += 2
        if field == UNKNOWN or found.seen & 1 << field:
            return False
        found.seen |= 1 << field
        if field == PAYLOAD or field == TRACING:
            start = at
            at = _value(p, at, end, levels if field == PAYLOAD else MAX_DEPTH - 1)
            if at < 0 or (field == PAYLOAD and not is_utf8(p + start, at - start)):
                return False
            found.text[field] = Span(start, at)
        elif field == SEQ or field == ACK or field == FLAGS:
            at = _whole(p, at, end, &found.number[field])
            if at < 0:
                return False
        else:
            if p[at] != c'"':
                return False
            if field == STREAM:
                found.name = at
            start = at + 1
            at = _plain(p, start, end)
            if at < 0 or at - start > MAX_ID:
                return False
            found.text[field] = Span(start, at)
            at += 1
        if at >= end:
            return False
        if p[at] == c"}":
            return at + 1 == end
        if p[at] != c",":
            return False


cdef inline Py_ssize_t _plain(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the end of the string whose text begins at `at`; -1 if it has escapes or no end."""
    while at < end and p[at] != c'"':
        if p[at] < 0x20 or p[at] == c"\\":
            return -1
        at += 1
    return at if at < end else -1


cdef inline Py_ssize_t _whole(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* number) noexcept nogil:
    """Return the end of the whole number at `at`; -1 if there is none up to 2^53-1."""
    cdef Py_ssize_t start = at
    cdef int64_t value = 0
    while at < end and c"0" <= p[at] <= c"9":
        if at - start == 16:
            return -1
        value = 10 * value + (p[at] - c"0")
        at += 1
    if at == start or value > MAX_NUMBER or (p[start] == c"0" and at > start + 1):
        return -1
    number[0] = value
    return at


cdef Py_ssize_t _value(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels) noexcept nogil:
    """Return the end of the value at `at` with at most `levels`; -1 if it is malformed or unusual."""
    cdef unsigned char closing
    if at >= end:
        return -1
    if p[at] == c'"':
        return _string(p, at + 1, end)
    if p[at] == c"{" or p[at] == c"[":
        closing = c"}" if p[at] == c"{" else c"]"
        if levels == 0:
            return -1
        at += 1
        if at < end and p[at] == closing:
            return at + 1
        while True:
            if closing == c"}":
                if at >= end or p[at] != c'"':
                    return -1
                at = _string(p, at + 1, end)
                if at < 0 or at >= end or p[at] != c":":
                    return -1
                at += 1
            at = _value(p, at, end, levels - 1)
            if at < 0 or at >= end:
                return -1
            if p[at] == closing:
                return at + 1
            if p[at] != c",":
                return -1
            at += 1
    if p[at] == c"t":
        return at + 4 if end - at >= 4 and memcmp(p + at, b"true", 4) == 0 else -1
    if p[at] == c"f":
        return at + 5 if end - at >= 5 and memcmp(p + at, b"false", 5) == 0 else -1
    if p[at] == c"n":
        return at + 4 if end - at >= 4 and memcmp(p + at, b"null", 4) == 0 else -1
    return _number(p, at, end)


cdef Py_ssize_t _string(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the index after the string whose text begins at `at`; -1 if it has no end, or rare escapes."""
    cdef unsigned char escaped
    while True:
        at = _text(p, at, end)
        if at >= end or p[at] < 0x20:
            return -1
        if p[at] == c'"':
            return at + 1
        if at + 1 >= end:
            return -1
        escaped = p[at + 1]
        if not (
            escaped == c'"' or escaped == c"\\" or escaped == c"/" or escaped == c"b" or escaped == c"f"
            or escaped == c"n" or escaped == c"r" or escaped == c"t"
        ):
            return -1
        at += 2


cdef inline Py_ssize_t _text(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the index of the next quote, backslash or control character, else `end`; reads eight bytes at a time."""
    cdef uint64_t word, quotes, slashes, controls
    cdef uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080
    while end - at >= 8:
        memcpy(&word, p + at, 8)
        # A byte of x is zero if its top bit is set in (x - 1) & ~x, which needs no branch.
        quotes = word ^ (ones * c'"')
        slashes = word ^ (ones * c"\\")
        controls = (word - ones * 0x20) & ~word
        if (((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | controls) & highs:
            break
        at += 8
    while at < end and p[at] != c'"' and p[at] != c"\\" and p[at] >= 0x20:
        at += 1
    return at


cdef Py_ssize_t _number(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the end of the number at `at`; -1 if there is none, or if it is long or has an exponent."""
    cdef Py_ssize_t start = at
    if p[at] == c"-":
        at += 1
    if at >= end or not c"0" <= p[at] <= c"9":
        return -1
    if p[at] == c"0":
        at += 1
    else:
        at = digits_end(p, at, end)
    if at < end and p[at] == c".":
        if at + 1 >= end or not c"0" <= p[at + 1] <= c"9":
            return -1
        at = digits_end(p, at + 1, end)
    if at - start > MAX_DIGITS or (at < end and (p[at] | 0x20) == c"e"):
        return -1
    return at


cdef Span json_ok_payload(Bytes p, Span body) noexcept nogil:
    """Return the position of the payload in a result `{ok: true, payload}` of usual form; else -1."""
    cdef Py_ssize_t end
    if body.end - body.start > 22 and memcmp(p + body.start, b'{"ok":true,"payload":', 21) == 0:
        # The body is known to be valid. It ends with the payload, unless another field follows.
        end = _value(p, body.start + 21, body.end, BODY_DEPTH)
        if end + 1 == body.end:
            return Span(body.start + 21, end)
    return Span(-1, -1)


cdef bint _has_wrapper(Bytes p, Py_ssize_t end) noexcept nogil:
    """Return whether valid JSON may contain a key that represents bytes or a big integer."""
    cdef Py_ssize_t at = 0
    cdef Bytes found
    while at < end:
        found = <Bytes>memchr(p + at, c"$", end - at)
        if found == NULL:
            return False
        at = found - p + 1
        if at > 1 and at < end and p[at - 2] == c'"' and (p[at] == c"t" or p[at] == c"b"):
            return True
    return False
