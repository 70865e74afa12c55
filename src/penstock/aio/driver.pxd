cimport cython

from .exchanges cimport Exchanges


cdef int EARLY


cdef class Driver(Exchanges):
    cdef object __weakref__
    cdef public str name
    cdef public object link
    cdef public bint closed
    cdef public object error
    cdef public object over
    cdef public bint usable
    cdef public bint spent
    cdef public object changed
    cdef public object gate
    cdef public object lessees
    cdef object _confirming
    cdef object _unlinked
    cdef list _waiters
    cdef bint _choked
    cdef bint _crowded
    cdef bint _flushing
    cdef int _holds
    cdef Py_ssize_t _fires
    cdef Py_ssize_t _unsent
    cdef object _timer
    cdef double _timer_due

    cpdef received(self, bytes data)
    cpdef wake(self)
    @cython.locals(happened=list)
    cpdef flush(self)
    cpdef write(self)
    cdef bint _bears(self, link) except -1
    cdef _set_timer(self)
