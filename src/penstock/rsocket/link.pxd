import cython

from ..payload cimport PayloadRun
from ..wire.codec cimport Codec
from ..wire.rsocket.frames cimport Frame
from ..wire.framing cimport Deframer
from .connection cimport Connection

cdef int _FIRST_COUNTED, _LAST_COUNTED, _REQUEST_RESPONSE, _CANCEL, _REQUEST_SUB
cdef int UP, RESUMING, DOWN, NEW, CLOSED


cdef class Links(Connection):
    cpdef receive(self, bytes data, double now)
    @cython.locals(deframer=Deframer, codec=Codec, buffer=bytes, start=Py_ssize_t, run=PayloadRun, frame=Frame)
    cdef _receive_frame(self, double now)
    cdef _number(self, Frame frame)
