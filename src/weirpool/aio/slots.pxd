import cython

from .flow cimport Flow


@cython.final
cdef class Slots:
    cdef Flow _flow
    cdef object _fires
    cdef Py_ssize_t _limit
    cdef object _timer
    cdef readonly Py_ssize_t taken
    cdef readonly Py_ssize_t lingering

    cpdef bint full(self) except -1
    cpdef take(self, bint over)
    cpdef linger(self)
    cpdef free(self, bint over)
    cpdef wait(self)
    cpdef stop_waiting(self)
