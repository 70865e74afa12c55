cimport cython
from libc.stdint cimport int64_t

from ..payload cimport PayloadRun
from .rsocket.frames cimport Frame
from .framing cimport Deframer


cdef class Codec:
    cdef readonly Py_ssize_t prefix_bytes
    cdef readonly Py_ssize_t header_bytes

    cpdef Frame decode(self, bytes buffer, Py_ssize_t start, Py_ssize_t end)
    cpdef int64_t stream_id(self, bytes buffer, Py_ssize_t start) except -1
    cpdef bytes encode(self, Frame frame)
    cpdef bytes frame(self, Frame frame)
    cpdef bytes payload_frame(self, long long stream_id, int flags, bytes metadata, bytes data)
    cpdef bytes payload_head(self, long long stream_id, int flags, bytes metadata, Py_ssize_t data_bytes)
    cpdef bytes request_frame(
        self, int type, long long stream_id, int flags, long long request_n, bytes metadata, bytes data
    )
    cpdef bytes request_n_frame(self, long long stream_id, long long count)
    cpdef bytes cancel_frame(self, long long stream_id)
    cpdef PayloadRun scan_run(self, Deframer deframer, Py_ssize_t limit)
    cpdef list run_frames(self, long long stream_id, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)

    @cython.locals(view="const int[::1]", limit=Py_ssize_t, at=Py_ssize_t, first=int)
    cpdef Py_ssize_t fits(self, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t most) except -1
