import cython

from ..payload cimport Payload
from .connectors cimport Connector
from .driver cimport Driver


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


@cython.locals(driver=Driver)
cdef _ready(Connector connector)
cdef _pending(Driver driver, stream_id, outgoing)


cdef class Peer:
    cdef readonly Connector _connector
    cdef list _interceptors
    cdef Peer _plain
