import cython

from ..core.streams cimport Stream
from ..payload cimport Payload, PayloadRun
from .link cimport Links

cdef int OPEN, OPENED, DRAINING, ENDLESS
cdef int _COMPLETE, _FAIL, _CANCELED
cdef int _CALL, _FIRE, _STREAM, _UPLOAD, _CHANNEL, _REQUEST_N


cdef class RSocketSession(Links):
    @cython.locals(stream=Stream)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(stream=Stream, flags=int, metadata=bytes, request_n="long long")
    cpdef open(self, kind, str route, Payload payload, long long credit=*, bint done=*, bint endless=*)
    @cython.locals(stream=Stream)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(stream=Stream)
    cpdef credit(self, stream_id)
    cpdef restore_from(self, checkpoint)
    cdef Stream _sending(self, stream_id)
    cdef _end(self, Stream stream, int signal)
