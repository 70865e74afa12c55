import cython

from ..account cimport Account


@cython.final
cdef class Backlog:
    cdef Account _account
    cdef object _events
    cdef readonly Py_ssize_t size

    @cython.locals(passed=list, rest=list, first=Py_ssize_t)
    cpdef list sift(self, list events, bint waits, Py_ssize_t held)
    cpdef end(self, list events)
    @cython.locals(of_handlers=Py_ssize_t, size=Py_ssize_t, taken=list)
    cdef list _take(self, Py_ssize_t held)
    cdef _count(self, Py_ssize_t size)
