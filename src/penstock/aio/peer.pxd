import cython

from ..payload cimport Payload
from .connectors cimport Connector
from .driver cimport Driver


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


@cython.locals(driver=Driver)
cdef _ready(Connector connector)
cdef bint _must_wait(Driver driver) except -1
cpdef _pending(Driver driver, future, stream_id, outgoing=*)


cdef class Peer:
    cdef readonly Connector _connector
    cdef list _interceptors
    cdef Peer _plain
