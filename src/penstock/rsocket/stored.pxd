import cython

from ..core.streams cimport Stream
from .session cimport RSocketSession


cdef class StoredSession(RSocketSession):
    cdef object _log
    cdef object _opening
    cdef bint _revived
    cdef bint _begun
    cdef long long _logged_received
    cdef long long _logged_sent
    cdef dict _logged
    cdef long long _rewrite_at

    cpdef list take_output(self)
    @cython.locals(events=list)
    cpdef list take_events(self)
    cpdef revive_from(self, retained, log)
