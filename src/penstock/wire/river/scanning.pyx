"""River's messages read in one pass, as all peers write them: `river_scanning.py` tells what the function does.

Whatever is unusual is left to the codec: escapes and white space outside of bodies, fields that are unknown, said
twice or of another type, numbers that are not whole, and all that is wrong. A property test holds
what is accepted here equal to what the codec makes of it.
"""

from typing import Any

import msgspec

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from .message cimport Message

__all__ = ["is_body", "scan"]

ctypedef const unsigned char* Bytes

cdef enum:
    MAX_DEPTH = 128
    # The envelope, a result and an error are three levels.
    BODY_DEPTH = 125
    MAX_ID = 1024
    MAX_DIGITS = 20
    MAX_BIG_DIGITS = 4000
    # The fields that every message has.
    NEEDED = 0xFF

cdef object FROM_JSON = msgspec.json.Decoder(dict[str, Any]).decode
cdef object FROM_MSGPACK = msgspec.msgpack.Decoder(dict[str, Any]).decode
cdef int64_t MAX_NUMBER = (<int64_t>1 << 53) - 1

# What a field is, and its bit among those that were seen.
cdef enum:
    ID, FROM, TO, SEQ, ACK, STREAM, FLAGS, PAYLOAD, SERVICE, PROCEDURE, TRACING, UNKNOWN


cdef struct Span:
    Py_ssize_t start
    Py_ssize_t end


cdef struct Envelope:
    Span text[12]
    int64_t number[12]
    # Where the stream's name begins with whatever is before its text.
    Py_ssize_t name
    int seen


cpdef Message scan(
    bytes buffer, Py_ssize_t start, Py_ssize_t end, bint json, bint results, str from_="", str to=""
):
    cdef Envelope found
    if start < 0 or end > len(buffer):
        raise IndexError(f"bytes {start} to {end} of {len(buffer)}")
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(buffer)
    # A result is one level around a body.
    cdef int levels = BODY_DEPTH + 1 if results else BODY_DEPTH
    found.seen = 0
    if json:
        if not _json_envelope(p, start, end, levels, &found):
            return None
    elif not _msgpack_envelope(p, start, end, levels, &found):
        return None
    if found.seen & NEEDED != NEEDED:
        return None
    cdef Message message = Message.__new__(Message)
    cdef Span body = found.text[PAYLOAD], well
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
        well = _json_well(p, body) if json else _msgpack_well(p, body)
        if well.start >= 0:
            message.well = _cut(p, well)
            return message
    message.payload = _cut(p, body)
    return message


cpdef bint is_body(bytes data, bint json):
    cdef Bytes p = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = len(data)
    if json:
        return _json_value(p, 0, end, BODY_DEPTH) == end and _is_utf8(p, end) and not _has_wrapper(p, end)
    return _msgpack_value(p, 0, end, BODY_DEPTH, True) == end


cdef inline bint _is_ascii(Bytes p, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef uint64_t word, found = 0, highs = 0x8080808080808080
    while end - at >= 8:
        memcpy(&word, p + at, 8)
        found |= word
        at += 8
    while at < end:
        found |= p[at]
        at += 1
    return found & highs == 0


cdef bint _is_utf8(Bytes p, Py_ssize_t end) noexcept nogil:
    """Whether so many bytes are UTF-8: no surrogates, nothing beyond U+10FFFF, and all in the shortest form."""
    cdef Py_ssize_t at = 0
    cdef unsigned char first, low, high
    cdef int more
    if _is_ascii(p, end):
        return True
    while at < end:
        first = p[at]
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        # What the second byte may be; the others are 80 to BF.
        low, high = 0x80, 0xBF
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if first == 0xE0:
            low = 0xA0
        elif first == 0xED:
            high = 0x9F
        elif first == 0xF0:
            low = 0x90
        elif first == 0xF4:
            high = 0x8F
        if end - at < more or p[at] < low or p[at] > high:
            return False
        if more > 1 and p[at + 1] & 0xC0 != 0x80:
            return False
        if more > 2 and p[at + 2] & 0xC0 != 0x80:
            return False
        at += more
    return True


cdef bint _has_wrapper(Bytes p, Py_ssize_t end) noexcept nogil:
    """Whether sound JSON may have one of the keys that stand for bytes and big integers."""
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


cdef inline str _text(Bytes p, Span span):
    return PyUnicode_DecodeUTF8(<const char*>p + span.start, span.end - span.start, NULL)


cdef inline str _known(Bytes p, Span span, str known):
    """Return the text, which is `known` in nearly all messages."""
    cdef Py_ssize_t size
    cdef const char* text = PyUnicode_AsUTF8AndSize(known, &size)
    if size == span.end - span.start and memcmp(text, p + span.start, size) == 0:
        return known
    return _text(p, span)


cdef inline bytes _cut(Bytes p, Span span):
    return PyBytes_FromStringAndSize(<const char*>p + span.start, span.end - span.start)


cdef inline int _field(Bytes p, Py_ssize_t start, Py_ssize_t size) noexcept nogil:
    """Return which field has that name."""
    p += start
    if size == 2:
        if p[0] == c"i" and p[1] == c"d":
            return ID
        if p[0] == c"t" and p[1] == c"o":
            return TO
    elif size == 3:
        if memcmp(p, b"seq", 3) == 0:
            return SEQ
        if memcmp(p, b"ack", 3) == 0:
            return ACK
    elif size == 4:
        if memcmp(p, b"from", 4) == 0:
            return FROM
    elif size == 7:
        if memcmp(p, b"payload", 7) == 0:
            return PAYLOAD
        if memcmp(p, b"tracing", 7) == 0:
            return TRACING
    elif size == 8:
        if memcmp(p, b"streamId", 8) == 0:
            return STREAM
    elif size == 11:
        if memcmp(p, b"serviceName", 11) == 0:
            return SERVICE
    elif size == 12:
        if memcmp(p, b"controlFlags", 12) == 0:
            return FLAGS
    elif size == 13:
        if memcmp(p, b"procedureName", 13) == 0:
            return PROCEDURE
    return UNKNOWN


# JSON.


cdef bint _json_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil:
    """Find the fields of a message, whose payload has at most so many levels; return whether it is one."""
    cdef Py_ssize_t start
    cdef int field
    if at >= end or p[at] != c"{":
        return False
    while True:
        # A quote, then a name, a quote and a colon.
        at += 1
        if at >= end or p[at] != c'"':
            return False
        start = at + 1
        at = _json_plain(p, start, end)
        if at < 0 or at + 2 >= end or p[at + 1] != c":":
            return False
        field = _field(p, start, at - start)
        at += 2
        if field == UNKNOWN or found.seen & 1 << field:
            return False
        found.seen |= 1 << field
        if field == PAYLOAD or field == TRACING:
            start = at
            at = _json_value(p, at, end, levels if field == PAYLOAD else MAX_DEPTH - 1)
            if at < 0 or (field == PAYLOAD and not _is_utf8(p + start, at - start)):
                return False
            found.text[field] = Span(start, at)
        elif field == SEQ or field == ACK or field == FLAGS:
            at = _json_whole(p, at, end, &found.number[field])
            if at < 0:
                return False
        else:
            if p[at] != c'"':
                return False
            if field == STREAM:
                found.name = at
            start = at + 1
            at = _json_plain(p, start, end)
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


cdef inline Py_ssize_t _json_plain(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return where the string without escapes ends that has begun before `at`; else -1."""
    while at < end and p[at] != c'"':
        if p[at] < 0x20 or p[at] == c"\\":
            return -1
        at += 1
    return at if at < end else -1


cdef inline Py_ssize_t _json_whole(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* number) noexcept nogil:
    """Return where the whole number at `at` ends; -1 if there is none, or one beyond 2^53-1."""
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


cdef Py_ssize_t _json_value(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels) noexcept nogil:
    """Return where the value at `at` ends, which has at most so many levels; -1 if it is none, or unusual."""
    cdef unsigned char closing
    if at >= end:
        return -1
    if p[at] == c'"':
        return _json_string(p, at + 1, end)
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
                at = _json_string(p, at + 1, end)
                if at < 0 or at >= end or p[at] != c":":
                    return -1
                at += 1
            at = _json_value(p, at, end, levels - 1)
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
    return _json_number(p, at, end)


cdef Py_ssize_t _json_string(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return what follows the string that has begun before `at`; -1 if it has no end, or rare escapes."""
    cdef unsigned char escaped
    while True:
        at = _json_text(p, at, end)
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


cdef inline Py_ssize_t _json_text(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return where a quote, a backslash or a control character stands, eight bytes at a time; `end`: nowhere."""
    cdef uint64_t word, quotes, slashes, controls
    cdef uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080
    while end - at >= 8:
        memcpy(&word, p + at, 8)
        # A byte is zero where its top bit is set in (x - 1) & ~x: the way to find one without a branch.
        quotes = word ^ (ones * c'"')
        slashes = word ^ (ones * c"\\")
        controls = (word - ones * 0x20) & ~word
        if (((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | controls) & highs:
            break
        at += 8
    while at < end and p[at] != c'"' and p[at] != c"\\" and p[at] >= 0x20:
        at += 1
    return at


cdef Py_ssize_t _json_number(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return where the number at `at` ends; -1 if there is none, or a long one, or one with an exponent."""
    cdef Py_ssize_t start = at
    if p[at] == c"-":
        at += 1
    if at >= end or not c"0" <= p[at] <= c"9":
        return -1
    if p[at] == c"0":
        at += 1
    else:
        at = _json_digits(p, at, end)
    if at < end and p[at] == c".":
        if at + 1 >= end or not c"0" <= p[at + 1] <= c"9":
            return -1
        at = _json_digits(p, at + 1, end)
    if at - start > MAX_DIGITS or (at < end and (p[at] | 0x20) == c"e"):
        return -1
    return at


cdef inline Py_ssize_t _json_digits(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    while at < end and c"0" <= p[at] <= c"9":
        at += 1
    return at


cdef inline Span _json_well(Bytes p, Span body) noexcept nogil:
    """Return where the payload is of a result that is well, as all peers write it; else -1."""
    cdef Py_ssize_t end
    if body.end - body.start > 22 and memcmp(p + body.start, b'{"ok":true,"payload":', 21) == 0:
        # The body is known to be sound: it ends with the payload, unless another field follows.
        end = _json_value(p, body.start + 21, body.end, BODY_DEPTH)
        if end + 1 == body.end:
            return Span(body.start + 21, end)
    return Span(-1, -1)


# MessagePack.


cdef bint _msgpack_envelope(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, Envelope* found) noexcept nogil:
    """Find the fields of a message, whose payload has at most so many levels; return whether it is one."""
    cdef Span name
    cdef int field, left
    if at >= end:
        return False
    if p[at] & 0xF0 == 0x80:
        left = p[at] & 0x0F
        at += 1
    elif p[at] == 0xDE and end - at >= 3:
        # Some peers write all maps so.
        left = p[at + 1] << 8 | p[at + 2]
        at += 3
    else:
        return False
    while left > 0:
        left -= 1
        name = _msgpack_string(p, at, end)
        if name.start < 0:
            return False
        at = name.end
        field = _field(p, name.start, at - name.start)
        if field == UNKNOWN or found.seen & 1 << field or at >= end:
            return False
        found.seen |= 1 << field
        if field == PAYLOAD or field == TRACING:
            found.text[field].start = at
            at = _msgpack_value(p, at, end, levels if field == PAYLOAD else MAX_DEPTH - 1, False)
            found.text[field].end = at
        elif field == SEQ or field == ACK or field == FLAGS:
            at = _msgpack_whole(p, at, end, &found.number[field])
        else:
            if field == STREAM:
                found.name = at
            found.text[field] = _msgpack_string(p, at, end)
            at = found.text[field].end
            if at - found.text[field].start > MAX_ID:
                return False
        if at < 0:
            return False
    return at == end


cdef inline Span _msgpack_string(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return where the text is of the string at `at`, whose first byte need not be there; else -1."""
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


cdef inline Py_ssize_t _msgpack_whole(Bytes p, Py_ssize_t at, Py_ssize_t end, int64_t* number) noexcept nogil:
    """Return where the whole number at `at` ends; -1 if there is none, or one beyond 2^53-1."""
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


cdef Py_ssize_t _msgpack_value(Bytes p, Py_ssize_t at, Py_ssize_t end, int levels, bint ours) noexcept nogil:
    """Return where the value at `at` ends, which has at most so many levels; -1 if it is none, or unusual.

    What is `ours` is looked at more closely: the keys of maps are strings, none of them huge.
    """
    cdef unsigned char first
    cdef Py_ssize_t count
    cdef Span text
    if at >= end:
        return -1
    first = p[at]
    if 0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDA:
        text = _msgpack_string(p, at, end)
        return text.end if text.start < 0 or _is_utf8(p + text.start, text.end - text.start) else -1
    at += 1
    if first < 0x80 or first >= 0xE0 or first == 0xC0 or first == 0xC2 or first == 0xC3:
        return at
    if first < 0x90:
        return _msgpack_map(p, at, end, first & 0x0F, levels, ours)
    if first < 0xA0:
        return _msgpack_array(p, at, end, first & 0x0F, levels, ours)
    if 0xC4 <= first <= 0xC6:
        return _msgpack_sized(p, at, end, 1 << (first - 0xC4))
    if 0xC7 <= first <= 0xC9:
        count = _msgpack_length(p, at, end, 1 << (first - 0xC7))
        return -1 if count < 0 else _msgpack_extension(p, at + (1 << (first - 0xC7)), end, count)
    if 0xD4 <= first <= 0xD8:
        return _msgpack_extension(p, at, end, 1 << (first - 0xD4))
    if first == 0xCA or first == 0xCB:
        return _within(at, 4 << (first - 0xCA), end)
    if 0xCC <= first <= 0xCF:
        return _within(at, 1 << (first - 0xCC), end)
    if 0xD0 <= first <= 0xD3:
        return _within(at, 1 << (first - 0xD0), end)
    if first == 0xDB and not ours:
        count = _msgpack_sized(p, at, end, 4)
        return count if count < 0 or _is_utf8(p + at + 4, count - at - 4) else -1
    if 0xDC <= first <= 0xDF:
        count = _msgpack_length(p, at, end, 2 << (first & 1))
        if count < 0:
            return -1
        at += 2 << (first & 1)
        if first >= 0xDE:
            return _msgpack_map(p, at, end, count, levels, ours)
        return _msgpack_array(p, at, end, count, levels, ours)
    return -1


cdef Py_ssize_t _msgpack_extension(Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t size) noexcept nogil:
    """Return where the extension ends whose type is at `at`, and whose data has so many bytes; -1 if it may be wrong."""
    if size >= end - at:
        return -1
    # Big integers, and times, are looked into; what others hold is between their users.
    if p[at] == 0 and not _is_integer(p, at + 1, size):
        return -1
    if p[at] == 0xFF and not (size == 4 or (size == 8 and _is_time(p, at + 1))):
        return -1
    return at + 1 + size


cdef bint _is_integer(Bytes p, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Whether so many bytes are one integer, or decimal digits as a string."""
    cdef Span text
    cdef Py_ssize_t start
    if size == 0:
        return False
    if p[at] < 0x80 or p[at] >= 0xE0:
        return size == 1
    if 0xCC <= p[at] <= 0xD3:
        return size == 1 + (1 << (p[at] & 3))
    text = _msgpack_string(p, at, at + size)
    if text.start < 0 or text.end != at + size or text.end - text.start > MAX_BIG_DIGITS:
        return False
    start = text.start
    if start < text.end and p[start] == c"-":
        start += 1
    return start < text.end and _json_digits(p, start, text.end) == text.end


cdef inline bint _is_time(Bytes p, Py_ssize_t at) noexcept nogil:
    """Whether the first 30 of 64 bits are less than a second in nanoseconds."""
    return (<int64_t>p[at] << 22 | p[at + 1] << 14 | p[at + 2] << 6 | p[at + 3] >> 2) < 1000000000


cdef inline Py_ssize_t _within(Py_ssize_t at, Py_ssize_t size, Py_ssize_t end) noexcept nogil:
    return at + size if size <= end - at else -1


cdef inline Py_ssize_t _msgpack_length(Bytes p, Py_ssize_t at, Py_ssize_t end, int width) noexcept nogil:
    cdef Py_ssize_t length = 0
    cdef int index
    if end - at < width:
        return -1
    for index in range(width):
        length = length << 8 | p[at + index]
    return length


cdef inline Py_ssize_t _msgpack_sized(Bytes p, Py_ssize_t at, Py_ssize_t end, int width) noexcept nogil:
    cdef Py_ssize_t length = _msgpack_length(p, at, end, width)
    return -1 if length < 0 else _within(at + width, length, end)


cdef Py_ssize_t _msgpack_array(
    Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count, int levels, bint ours
) noexcept nogil:
    """Return where the array ends that has `count` values, the first of which is at `at`."""
    if levels == 0:
        return -1
    while count > 0 and at >= 0:
        at = _msgpack_value(p, at, end, levels - 1, ours)
        count -= 1
    return at


cdef Py_ssize_t _msgpack_map(
    Bytes p, Py_ssize_t at, Py_ssize_t end, Py_ssize_t count, int levels, bint ours
) noexcept nogil:
    """Return where the map ends that has `count` keys and values, the first of which is at `at`."""
    if levels == 0:
        return -1
    while count > 0 and at >= 0:
        if ours and _msgpack_string(p, at, end).start < 0:
            return -1
        at = _msgpack_value(p, at, end, levels - 1, ours)
        if at >= 0:
            at = _msgpack_value(p, at, end, levels - 1, ours)
        count -= 1
    return at


cdef inline Span _msgpack_well(Bytes p, Span body) noexcept nogil:
    """Return where the payload is of a result that is well, as all peers write it; else -1."""
    cdef Py_ssize_t at = body.start
    # The body is known to be sound: of its two fields the second is the payload, and so its end.
    if body.end - at > 13 and memcmp(p + at, b"\x82\xa2ok\xc3\xa7payload", 13) == 0:
        return Span(at + 13, body.end)
    return Span(-1, -1)
