cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef int _UNION, _STRING, _INTEGER, _NULL, _BOOLEAN, _DOUBLE, _FLOAT, _FIXED, _ENUM, _RECORD, _ARRAY, _MAP


@cython.final
cdef class Plan:
    cdef readonly int kind
    cdef readonly tuple inner
    cdef readonly int64_t low
    cdef readonly int64_t high
    cdef readonly int64_t factor
    cdef readonly tuple slots
    cdef readonly list blank
    cdef readonly tuple symbols
    cdef readonly object convert


@cython.final
cdef class Cursor:
    cdef readonly bytes data
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t size

    cpdef whole(self, Plan plan)

    @cython.locals(kind=int)
    cpdef value(self, Plan plan)

    @cython.locals(at=Py_ssize_t, number=int64_t, byte=int)
    cdef _scalar(self, Plan plan, int kind)

    @cython.locals(values=list, index=Py_ssize_t, slot=Py_ssize_t)
    cdef _record(self, Plan plan)

    @cython.locals(values=list, count=int64_t)
    cdef _array(self, Plan element)

    @cython.locals(values=dict, count=int64_t, at=Py_ssize_t)
    cdef _map(self, Plan element)

    @cython.locals(count=int64_t)
    cdef int64_t _count(self) except -1

    @cython.locals(index=int64_t)
    cdef Py_ssize_t _index(self, Py_ssize_t count) except -1

    @cython.locals(shift=int, byte=uint64_t, value=uint64_t)
    cdef int64_t _number(self) except? -1

    cdef int _byte(self) except -1

    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _skip(self, int64_t size) except -1
