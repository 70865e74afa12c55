cimport cython
from libc.stdint cimport int64_t

from ...payload cimport PayloadRun
from ..codec cimport Codec
from ..fields cimport u32
from .frames cimport Frame, RequestNFrame
from ..framing cimport Deframer
from .packing cimport pack, pack_head, pack_run
from .scanning cimport scan

# Constants that the module imports or defines, as C integers.
cdef int COMPLETE
cdef int FOLLOWS
cdef int IGNORE
cdef int METADATA
cdef int NEXT
cdef int FLAGS
cdef int HEADER_BYTES
cdef int TYPE_SHIFT
cdef int SPARE_ITEMS
cdef long long GREATEST_31
cdef int REQUEST_RESPONSE
cdef int REQUEST_STREAM
cdef int REQUEST_CHANNEL
cdef int REQUEST_N
cdef int CANCEL
cdef int PAYLOAD


cdef class RSocketV1(Codec):
    cdef object _layouts
    cdef bint _forgiving

    @cython.locals(
        p="const unsigned char*", word="unsigned int", type=int, frame=Frame, at=Py_ssize_t, size=Py_ssize_t
    )
    cpdef Frame decode(self, bytes buffer, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(
        buffer=bytes, p="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, stream_id=int64_t
    )
    cpdef PayloadRun scan_run(self, Deframer deframer, Py_ssize_t limit)


@cython.locals(left=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _metadata_bytes(
    const unsigned char* p, Py_ssize_t start, Py_ssize_t at, Py_ssize_t end, bint forgiving
) except -1
