import cython
from libc.stdint cimport int64_t

from ..account cimport Account
from ..payload cimport Payload, PayloadRun
from .inbound cimport Inbound
from .link cimport Link
from .outbound cimport Outbound
from .streams cimport Publication, Subscription, add, spend

cdef int NEW, OPENED, DRAINING, LEAVING, CLOSED
cdef int64_t UNBOUNDED


@cython.final
cdef class ReactiveStreamsSession:
    cdef object _settings
    cdef readonly Account account
    cdef bint _is_client
    cdef list _events
    cdef object _timers
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef Link _link
    cdef public bint link_wanted
    cdef public bytes identity
    cdef readonly object link_up
    cdef readonly object link_down
    cdef readonly object receive
    cdef readonly object progressed
    cdef readonly object handle_timer
    cdef readonly object next_timer
    cdef readonly object take_output

    @cython.locals(happened=list)
    cpdef list take_events(self)
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
