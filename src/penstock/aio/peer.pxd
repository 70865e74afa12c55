import cython

from ..payload cimport Payload
from .connectors cimport Connector


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


cdef class Peer:
    cdef readonly Connector _connector
    cdef list _interceptors
    cdef Peer _plain
