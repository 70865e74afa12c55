import cython

from ..core.outbox cimport Outbox
from ..core.replay cimport Replay
from ..payload cimport Payload, PayloadRun
from ..wire.rsocket.codec cimport Codec


@cython.final
cdef class Outbound:
    cdef public Codec codec
    cdef public Py_ssize_t fragment_bytes
    cdef public bint fragments_requests
    cdef public Py_ssize_t max_item_bytes
    cdef public Py_ssize_t max_request_bytes
    cdef Py_ssize_t _whole_bytes
    cdef public Outbox outbox
    cdef public bint linked
    cdef public long long position
    cdef public Py_ssize_t prefix_bytes
    cdef public Replay replay

    cpdef control(self, frame)
    @cython.locals(size=Py_ssize_t)
    cpdef check_request(self, Payload payload)
    @cython.locals(first=bint, begun=int, size=Py_ssize_t)
    cpdef request(self, int type, stream_id, int flags, long long request_n, Payload payload)
    @cython.locals(complete=int, size=Py_ssize_t, data=bytes)
    cpdef item(self, stream_id, Payload payload, bint done)
    @cython.locals(at=Py_ssize_t, fitting=Py_ssize_t, frames=Py_ssize_t, pieces=list, piece=bytes)
    cpdef run(self, stream_id, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)
    cpdef complete(self, stream_id)
    cpdef request_n(self, stream_id, long long count)
    cpdef cancel(self, stream_id, bytes metadata=*)
    cpdef error(self, stream_id, long long code, bytes data, bytes metadata=*)
    cdef _fragment(self, stream_id, int complete, bytes metadata, bytes data, bint follows)
    cdef _by_reference(self, stream_id, int flags, bytes metadata, bytes data)
    @cython.locals(size=Py_ssize_t)
    cdef _count(self, bytes piece, Py_ssize_t frames)
