cimport cython
from libc.stdint cimport int64_t

from ...payload cimport PayloadRun
from ..fields cimport u32
from ..framing cimport Deframer
from .frames cimport Frame, KeepaliveFrame, RequestNFrame
from .packing cimport pack, pack_head, pack_run, take_run

# Constants that the module imports or defines, as C integers.
cdef int IGNORE, METADATA, NEXT, FLAGS
cdef int HEADER_BYTES, TYPE_SHIFT, SPARE_ITEMS
cdef int KEEPALIVE, KEEPALIVE_BYTES
cdef long long GREATEST_31, GREATEST_63
cdef int REQUEST_RESPONSE, REQUEST_STREAM, REQUEST_CHANNEL, REQUEST_N, CANCEL, PAYLOAD


cdef class Codec:
    cdef readonly Py_ssize_t prefix_bytes
    cdef readonly Py_ssize_t header_bytes
    cdef readonly bint counts_itself
    cdef object _layouts
    cdef bint _forgiving
    cdef int _own

    @cython.locals(
        p="const unsigned char*", word="unsigned int", type=int, frame=Frame, at=Py_ssize_t, size=Py_ssize_t,
        count=int64_t,
    )
    cpdef Frame decode(self, bytes buffer, Py_ssize_t start, Py_ssize_t end)
    cpdef object stream_id(self, bytes buffer, Py_ssize_t start)
    cpdef int type(self, bytes buffer, Py_ssize_t start) except -1
    cpdef bytes encode(self, Frame frame)
    cpdef bytes frame(self, Frame frame)
    cpdef bytes payload_frame(self, stream_id, int flags, bytes metadata, bytes data)
    cpdef bytes payload_head(self, stream_id, int flags, bytes metadata, Py_ssize_t data_bytes)
    cpdef bytes request_frame(
        self, int type, stream_id, int flags, long long request_n, bytes metadata, bytes data
    )
    cpdef bytes request_n_frame(self, stream_id, long long count)
    cpdef bytes cancel_frame(self, stream_id)

    @cython.locals(
        buffer=bytes, p="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, stream_id=int64_t
    )
    cpdef PayloadRun scan_run(self, Deframer deframer, Py_ssize_t limit)
    cpdef list run_frames(self, stream_id, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)

    @cython.locals(view="const int[::1]", limit=Py_ssize_t, at=Py_ssize_t, first=int)
    cpdef Py_ssize_t fits(self, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t max_bytes) except -1


@cython.locals(p="const unsigned char*", frame=KeepaliveFrame, at=Py_ssize_t, high=int64_t, position=int64_t)
cdef KeepaliveFrame _keepalive_frame(bytes buffer, Py_ssize_t start, Py_ssize_t end, bint signed)

@cython.locals(sound=bint)
cdef bytes _keepalive_body(KeepaliveFrame frame)

@cython.locals(left=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _metadata_bytes(
    const unsigned char* p, Py_ssize_t start, Py_ssize_t at, Py_ssize_t end, bint forgiving
) except -1
