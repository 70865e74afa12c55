"""TransportMessage in C: the class, and the fields of `grammar.py` for the scanners of both codecs."""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

ctypedef const unsigned char* Bytes

cdef enum:
    # The limits of `grammar.py`.
    MAX_DEPTH = 128
    BODY_DEPTH = 125
    MAX_ID = 1024
    MAX_BIG_DIGITS = 4000
    # The fields that every message has.
    NEEDED = 0xFF

# The numbers of fields, and of their bits in `seen`, in the order of `grammar.FIELDS`.
cdef enum:
    ID, FROM, TO, SEQ, ACK, STREAM, FLAGS, PAYLOAD, SERVICE, PROCEDURE, TRACING, UNKNOWN


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class Message:
    cdef public str id
    cdef public str from_
    cdef public str to
    cdef public long long seq
    cdef public long long ack
    cdef public str stream_id
    cdef public bytes encoded
    cdef public long long control_flags
    cdef public bytes payload
    cdef public bytes ok_payload
    cdef public str service_name
    cdef public str procedure_name
    cdef public dict tracing
    cdef public object fault


cdef struct Span:
    Py_ssize_t start
    Py_ssize_t end


cdef struct Envelope:
    Span text[12]
    int64_t number[12]
    # The start of the encoded stream id, including the bytes before its text.
    Py_ssize_t name
    int seen


cdef inline int field_of(Bytes p, Py_ssize_t size) noexcept nogil:
    """Return the number of the field whose name is the `size` bytes at `p`."""
    if size == 2:
        return _either(p, 2, b"id", ID, b"to", TO)
    if size == 3:
        return _either(p, 3, b"seq", SEQ, b"ack", ACK)
    if size == 4:
        return FROM if memcmp(p, b"from", 4) == 0 else UNKNOWN
    if size == 7:
        return _either(p, 7, b"payload", PAYLOAD, b"tracing", TRACING)
    if size == 8:
        return STREAM if memcmp(p, b"streamId", 8) == 0 else UNKNOWN
    if size == 11:
        return SERVICE if memcmp(p, b"serviceName", 11) == 0 else UNKNOWN
    if size == 12:
        return FLAGS if memcmp(p, b"controlFlags", 12) == 0 else UNKNOWN
    if size == 13:
        return PROCEDURE if memcmp(p, b"procedureName", 13) == 0 else UNKNOWN
    return UNKNOWN


cdef inline int _either(
    Bytes p, Py_ssize_t size, const char* first, int one, const char* second, int other
) noexcept nogil:
    if memcmp(p, first, size) == 0:
        return one
    return other if memcmp(p, second, size) == 0 else UNKNOWN


cdef inline Py_ssize_t digits_end(Bytes p, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the end of the decimal digits at `at`, if there are any."""
    while at < end and c"0" <= p[at] <= c"9":
        at += 1
    return at


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


cdef inline bint is_utf8(Bytes p, Py_ssize_t end) noexcept nogil:
    """Return whether the bytes are UTF-8: no surrogates, nothing beyond U+10FFFF, and all in the shortest form."""
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
        # The range of the second byte; that of the others is 80 to BF.
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
