import cython

from ..account cimport Account


@cython.final
cdef class Unfinished:
    cdef Account _account
    cdef object _timers
    cdef double _timeout
    cdef bint _watched
    cdef double _grown_at
    cdef readonly Py_ssize_t held

    cpdef update(self, Py_ssize_t held, double now)
    @cython.locals(due=double)
    cpdef bint overdue(self, double now) except -1
    cpdef drop(self)
