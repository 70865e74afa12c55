import cython

from ..payload cimport Payload


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


cdef class Asking:
    pass
