import cython

from ..payload cimport Payload
from .connectors cimport Connector
from .driver cimport Driver
from .exchanges cimport Exchanges


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


@cython.locals(driver=Driver, exchanges=Exchanges)
cdef _ready(Connector connector, kind)
cpdef _pending(Driver driver, future, stream_id, items=*, Py_ssize_t size=*)


cdef class Peer:
    cdef readonly Connector _connector
    cdef list _interceptors
    cdef Peer _plain
