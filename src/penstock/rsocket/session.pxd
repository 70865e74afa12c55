import cython

from ..core.streams cimport Stream
from ..payload cimport Payload, PayloadRun
from .connection cimport Connection

cdef int _CALL, _FIRE, _STREAM, _UPLOAD, _CHANNEL


cdef class RSocketSession(Connection):
    @cython.locals(stream=Stream)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    cpdef restore_from(self, checkpoint)
    cdef Stream _sending(self, stream_id)
    cdef _end(self, Stream stream, signal)
