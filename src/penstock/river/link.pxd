import cython

from ..wire.framing cimport Deframer
from ..wire.river.message cimport Message
from ..wire.river.scanning cimport scan
from .oversized cimport Oversized
from .sequence cimport Sequence

cdef int ACK, DOWN, HANDSHAKING, UP, DRAINING


cdef class Links(Oversized):
    @cython.locals(deframer=Deframer)
    cpdef receive(self, bytes data, double now)
    @cython.locals(buffer=bytes, start=Py_ssize_t, end=Py_ssize_t, message=Message)
    cdef Message _decoded(self, Deframer deframer)
    @cython.locals(sequence=Sequence)
    cdef _message(self, Message message, Py_ssize_t size, double now)
    cdef _astray(self, Message message, double now)
    cdef _echo(self)
    cpdef _confirmed(self, double now)
    cdef _after(self)
