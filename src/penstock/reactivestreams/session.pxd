import cython

from ..payload cimport Payload, PayloadRun
from .connection cimport Connection
from .streams cimport Publication, Subscription, add, spend

cdef int OPENED, DRAINING, LEAVING, CLOSED


cdef class ReactiveStreamsSession(Connection):
    @cython.locals(subscription=Subscription)
    cpdef open(self, kind, str route, Payload payload, credit=*, bint done=*, bint endless=*)
    @cython.locals(publication=Publication)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(publication=Publication, stop=Py_ssize_t, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(publication=Publication)
    cpdef credit(self, stream_id)
    cdef Publication _publication(self, stream_id)
    @cython.locals(publication=Publication)
    cdef Publication _sending(self, stream_id)
    cdef _end(self, Publication publication)
