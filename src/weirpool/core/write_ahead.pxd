import cython

from .outbox cimport Outbox


cdef class WriteAhead(Outbox):
    cdef object _observe
    cdef object _encode
    cdef object _fail
    cdef object _is_open
    cdef Py_ssize_t _high_bytes
    cdef object _logged
    cdef object _writing
    cdef object _afterwards
    cdef object _watcher
    cdef object _run
    cdef long long _rewrite_at
    cdef bint _unsynced
    cdef bint _storage_full
    cdef list _held_output
    cdef list _ready_output
    cdef list _held_events
    cdef list _ready_events
    cdef readonly object log
    cdef readonly list waiting
    cdef readonly bint begun

    cpdef void clear(self)
    @cython.locals(first=Py_ssize_t, ready=list)
    cpdef list sift(self, list events)
    cdef list _take_ready(self, list events)
    cdef _secure(self)
