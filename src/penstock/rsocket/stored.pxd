import cython

from ..core.streams cimport Stream
from .session cimport RSocketSession

cdef int CLOSED, OPENED


cdef class StoredSession(RSocketSession):
    cdef object _log
    cdef object _run
    cdef object _watcher
    cdef object _opening
    cdef bint _revived
    cdef bint _begun
    cdef long long _logged_received
    cdef long long _logged_sent
    cdef dict _logged
    cdef long long _rewrite_at
    cdef bint _unsynced
    cdef object _writing
    cdef object _afterwards
    cdef bint _crowded
    cdef list _waiting_events
    cdef list _held_output
    cdef list _held_events
    cdef list _ready_output
    cdef list _ready_events

    cpdef receive(self, bytes data, double now)
    cpdef list take_output(self)
    @cython.locals(events=list, ready=list, waiting=Py_ssize_t)
    cpdef list take_events(self)
    cpdef revive_from(self, retained, log)
