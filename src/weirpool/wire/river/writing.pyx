"""Encodes River messages in one pass; `writing.py` documents each function.

A property test compares the two.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from ...errors import LocalError

__all__ = ["Writer"]

cdef enum:
    PREFIX_BYTES = 4
    FIELDS = 8
    # The longest decimal number of 64 bits.
    NUMBER_BYTES = 20


cdef struct Number:
    char text[NUMBER_BYTES]
    int size


@cython.final
cdef class Writer:
    def __init__(self, codec, str us, str peer, str tag):
        self._field = codec.field
        self._route_fields = codec.route_fields
        self._is_json = codec.is_json
        self._before = codec.before
        self._after = codec.after
        self._tag = tag
        self._tag_bytes = tag.encode()
        self._made = 0
        between = b'","from":%b,"to":%b,"seq":' if codec.is_json else b"\xa4from%b\xa2to%b\xa3seq"
        self._from_to = between % (codec.encoded(us), codec.encoded(peer))
        if codec.is_json:
            self._fixed = (b'{"id":"', b',"ack":', b',"streamId":', b',"controlFlags":', b',"payload":', b"}")
        else:
            # The bytes for the number of fields and for the length of the id are written in each message.
            self._fixed = (b"\x80\xa2id\xa0", b"\xa3ack", b"\xa8streamId", b"\xaccontrolFlags", b"\xa7payload", b"")
        self._same_bytes = len(self._tag_bytes) + len(self._from_to) + sum(map(len, self._fixed))

    cpdef str new_id(self):
        self._made += 1
        return f"{self._tag}{self._made:x}"

    cpdef bytes name(self, str own):
        cdef bytes ascii_id = own.encode()
        return b'"' + ascii_id + b'"' if self._is_json else bytes((0xA0 | len(ascii_id),)) + ascii_id

    cpdef bytes message(
        self,
        long long seq,
        long long ack,
        bytes name,
        int flags,
        bytes body,
        bint wrap_ok=False,
        str route=None,
        dict tracing=None,
    ):
        if name is None or body is None:
            raise TypeError("the name of the stream and the body are bytes")
        cdef bytes more = b"" if route is None else self._route_fields(route)
        if tracing is not None:
            more += self._field("tracing", tracing)
        cdef bytes before = self._before if wrap_ok else b""
        cdef bytes after = self._after if wrap_ok else b""
        cdef tuple fixed = self._fixed
        cdef bytes first = <bytes>fixed[0]
        cdef Number number, numbered, acked, flagged
        cdef int fields = FIELDS + (2 if route is not None else 0) + (1 if tracing is not None else 0)
        # Both branches set it, which gcc does not see.
        flagged.size = 0
        self._made += 1
        _hexadecimal(&number, self._made)
        if self._is_json:
            _decimal(&numbered, seq)
            _decimal(&acked, ack)
            _decimal(&flagged, flags)
        else:
            _packed(&numbered, seq)
            _packed(&acked, ack)
            _packed(&flagged, flags)
        cdef Py_ssize_t size = (
            self._same_bytes + number.size + numbered.size + acked.size + PyBytes_GET_SIZE(name) + flagged.size
            + PyBytes_GET_SIZE(before) + PyBytes_GET_SIZE(body) + PyBytes_GET_SIZE(after) + PyBytes_GET_SIZE(more)
        )
        if size >> 32:
            raise LocalError(f"a message of {size} bytes is too long for a 4-byte length")
        cdef bytes written = PyBytes_FromStringAndSize(NULL, PREFIX_BYTES + size)
        cdef char* to = PyBytes_AS_STRING(written)
        cdef int index
        for index in range(PREFIX_BYTES):
            to[index] = <char>(size >> 8 * (PREFIX_BYTES - 1 - index) & 0xFF)
        to = _put(to + PREFIX_BYTES, first)
        if not self._is_json:
            (to - PyBytes_GET_SIZE(first))[0] = <char>(0x80 | fields)
            (to - 1)[0] = <char>(0xA0 | (PyBytes_GET_SIZE(self._tag_bytes) + number.size))
        to = _put_number(_put(to, self._tag_bytes), &number)
        to = _put_number(_put(to, self._from_to), &numbered)
        to = _put_number(_put(to, <bytes>fixed[1]), &acked)
        to = _put(_put(to, <bytes>fixed[2]), name)
        to = _put_number(_put(to, <bytes>fixed[3]), &flagged)
        to = _put(_put(to, <bytes>fixed[4]), before)
        to = _put(_put(_put(to, body), after), more)
        _put(to, <bytes>fixed[5])
        return written


cdef inline char* _put(char* to, bytes what) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(what)
    memcpy(to, PyBytes_AS_STRING(what), size)
    return to + size


cdef inline char* _put_number(char* to, const Number* number) noexcept:
    # The text is right-aligned in its array.
    memcpy(to, number.text + NUMBER_BYTES - number.size, number.size)
    return to + number.size


cdef inline void _decimal(Number* number, uint64_t value) noexcept:
    cdef int at = NUMBER_BYTES
    while True:
        at -= 1
        number.text[at] = <char>(c"0" + value % 10)
        value //= 10
        if value == 0:
            break
    number.size = NUMBER_BYTES - at


cdef inline void _hexadecimal(Number* number, uint64_t value) noexcept:
    cdef int at = NUMBER_BYTES
    while True:
        at -= 1
        number.text[at] = <char>(b"0123456789abcdef"[value & 0xF])
        value >>= 4
        if value == 0:
            break
    number.size = NUMBER_BYTES - at


cdef inline void _packed(Number* number, uint64_t value) noexcept:
    cdef int width = 1 if value < 0x80 else 2 if value < 0x1_0000 else 4 if value < 0x1_0000_0000 else 8
    cdef int index
    for index in range(width):
        number.text[NUMBER_BYTES - 1 - index] = <char>(value >> 8 * index & 0xFF)
    number.size = width
    if width > 1:
        number.size += 1
        number.text[NUMBER_BYTES - number.size] = <char>(0xCD if width == 2 else 0xCE if width == 4 else 0xCF)
