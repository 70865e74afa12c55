import cython

from ..wire.river_message cimport Message
from .links cimport Links
from .sequence cimport Sequence
from .streams cimport RiverStream


cdef class Checkpoints(Links):
    @cython.locals(sequence=Sequence)
    cdef _echo(self)
    cdef _astray(self, Message message, double now)
