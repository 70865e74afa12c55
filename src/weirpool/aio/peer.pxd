import cython

from ..payload cimport Payload
from .connectors cimport Connector
from .driver cimport Driver
from .exchanges cimport Exchanges
from .replies cimport Reply


@cython.locals(routed=bint)
cpdef tuple request_of(route, data, metadata)


@cython.locals(driver=Driver, exchanges=Exchanges)
cdef _ready(Connector connector, kind)
cpdef Reply _pending(Driver driver, Reply reply, stream_id, items=*, Py_ssize_t size=*)


cdef class Peer:
    cdef readonly Connector _connector
    cdef list _interceptors
    cdef Peer _plain
