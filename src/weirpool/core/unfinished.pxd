import cython

from ..account cimport Account


@cython.final
cdef class Unfinished:
    cdef Account _account
    cdef object _timers
    cdef double _timeout
    cdef bint _watched
    cdef bint _ready
    cdef double _grown_at
    cdef readonly Py_ssize_t held

    cpdef update(self, Py_ssize_t held, double now, bint ready=*)
    @cython.locals(due=double)
    cpdef bint overdue(self, double now) except -1
    cpdef excuse(self, double now)
    cpdef drop(self)
    cdef _count(self, Py_ssize_t held, bint ready)
