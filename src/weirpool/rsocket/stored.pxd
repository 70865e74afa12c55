import cython

from ..core.streams cimport Stream
from ..core.write_ahead cimport WriteAhead
from .session cimport RSocketSession

cdef int CLOSED, OPENED


cdef class StoredSession(RSocketSession):
    cdef readonly WriteAhead _storage
    cdef object _opening
    cdef bint _revived

    @cython.locals(ready=list)
    cpdef list take_events(self)
