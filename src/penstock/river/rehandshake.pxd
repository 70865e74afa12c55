from ..wire.river.message cimport Message
from .connection cimport Connection


cdef class Rehandshakes(Connection):
    cdef bint _rehandshaken(self, Message message) except -1
    cdef _not_rehandshaken(self)
    cdef _say(self)
