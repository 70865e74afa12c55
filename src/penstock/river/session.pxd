import cython

from ..payload cimport Payload, PayloadRun
from ..wire.river.scanning cimport is_body
from .checkpoint cimport Checkpoints
from .streams cimport RiverStream

cdef int CLOSE, OPENS, OPENED, CLOSED, DONE, OPEN
cdef int _FIRE, _STREAM, _UPLOAD, _CHANNEL


cdef class RiverSession(Checkpoints):
    @cython.locals(name=str, encoded=bytes, closed=bint, stream=RiverStream, body=bytes)
    cpdef open(self, kind, str route, Payload payload, long long credit=*, bint done=*, bint endless=*)
    @cython.locals(stream=RiverStream, body=bytes)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(sent=Py_ssize_t, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(room=Py_ssize_t)
    cpdef credit(self, stream_id)
    @cython.locals(data=bytes)
    cdef bytes _body(self, Payload payload)
    cdef RiverStream _sending(self, stream_id)
    cdef _done(self, RiverStream stream)
