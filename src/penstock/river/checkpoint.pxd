import cython

from ..wire.river.message cimport Message
from .link cimport Links
from .sequence cimport Sequence
from .streams cimport RiverStream


cdef class Checkpoints(Links):
    @cython.locals(sequence=Sequence)
    cdef _echo(self)
    cdef _astray(self, Message message, double now)
