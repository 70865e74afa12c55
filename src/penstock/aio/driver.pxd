cimport cython

from .flow cimport Flow


cdef int EARLY, MOST_LEFT


cdef class Driver(Flow):
    cdef object __weakref__
    cdef public object over
    cdef public bint lasting
    cdef public bint usable
    cdef public bint spent
    cdef public object changed
    cdef public object lessees
    cdef object _confirming
    cdef object _unlinked
    cdef bint _flushing
    cdef object _timer
    cdef double _timer_due
    cdef public object error

    cpdef received(self, bytes data)
    cpdef wake(self)
    @cython.locals(happened=list)
    cpdef flush(self)
    cdef _forget_left(self)
    cdef _set_timer(self)
