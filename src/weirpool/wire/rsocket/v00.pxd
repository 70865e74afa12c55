cimport cython
from libc.stdint cimport int64_t

from ...payload cimport Payload, PayloadRun
from ..framing cimport Deframer
from .codec cimport Codec
from .frames cimport Frame, RequestNFrame

# Constants that the module imports or defines, as C integers.
cdef int COMPLETE, NEXT
cdef int HEADER_BYTES, METADATA_BYTES, SPARE_ITEMS, VERSION
cdef int IGNORE_BIT, METADATA_BIT, FOLLOWS_BIT, COMPLETE_BIT, FLAG_SHIFT
cdef int REQUEST_RESPONSE, REQUEST_SUB, PAYLOAD
cdef int N_REQUEST_RESPONSE, N_REQUEST_STREAM, N_REQUEST_SUB, N_REQUEST_N, N_CANCEL, N_RESPONSE
cdef Py_ssize_t PIECE_BYTES
cdef long long GREATEST_31


cdef class ReactiveSocketV00(Codec):
    @cython.locals(p="const unsigned char*", number=int, frame=Frame)
    cpdef Frame decode(self, bytes buffer, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(p="const unsigned char*")
    cpdef object stream_id(self, bytes buffer, Py_ssize_t start)

    @cython.locals(number=int)
    cpdef int type(self, bytes buffer, Py_ssize_t start) except -1

    cpdef bytes payload_frame(self, stream_id, int flags, bytes metadata, bytes data)

    @cython.locals(number=int, head=bytes)
    cpdef bytes request_frame(
        self, int type, stream_id, int flags, long long request_n, bytes metadata, bytes data
    )

    @cython.locals(p="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, following=Py_ssize_t)
    cpdef PayloadRun scan_run(self, Deframer deframer, Py_ssize_t limit)

    @cython.locals(pieces=list, frames=list, size=Py_ssize_t, payload=Payload, frame=bytes)
    cpdef list run_frames(self, stream_id, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)


@cython.locals(
    bits=int, metadata_bytes=Py_ssize_t, at=Py_ssize_t, length=Py_ssize_t, head=bytearray, q="unsigned char*"
)
cdef bytes _head(
    Py_ssize_t prefix, int number, int flags, object stream_id, long long request_n, bytes metadata,
    Py_ssize_t data_bytes,
)

@cython.locals(shift=int)
cdef void _put(unsigned char* q, Py_ssize_t at, unsigned long long value) noexcept

@cython.locals(high=int64_t)
cdef int64_t _word(const unsigned char* p, Py_ssize_t at) noexcept

@cython.locals(high="unsigned long long")
cdef unsigned long long _long(const unsigned char* p, Py_ssize_t at) noexcept

@cython.locals(bits=int, at=Py_ssize_t, middle=Py_ssize_t, frame=Frame)
cdef Frame _frequent(const unsigned char* p, Py_ssize_t start, Py_ssize_t end, int number)

@cython.locals(
    p="const unsigned char*", gap=Py_ssize_t, at=Py_ssize_t, first=Py_ssize_t, taken=Py_ssize_t, end=Py_ssize_t,
    taken_end=Py_ssize_t, view="int[::1]", count=Py_ssize_t, carried=Py_ssize_t, middle=Py_ssize_t,
    metadata=Py_ssize_t, length=Py_ssize_t, run=PayloadRun,
)
cdef PayloadRun _scan(Deframer deframer, Py_ssize_t limit)

cdef bint _same_stream(const unsigned char* p, Py_ssize_t at, Py_ssize_t other) noexcept

@cython.locals(bits=int, middle=Py_ssize_t, length=Py_ssize_t)
cdef Py_ssize_t _item_data(const unsigned char* p, Py_ssize_t at, Py_ssize_t end) noexcept
