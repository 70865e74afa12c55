import cython

from ..core.unfinished cimport Unfinished
from ..wire.reactivestreams.codec cimport Items, Message
from ..wire.reactivestreams.decoder cimport Decoder
from .inbound cimport Inbound
from .outbound cimport Outbound

cdef int _GOODBYE
cdef int NEW, OPENED, DRAINING, LEAVING, CLOSED
cdef Py_ssize_t ITEMS_OF_MESSAGE


@cython.final
cdef class Link:
    cdef object _settings
    cdef bint _is_client
    cdef list _offered
    cdef list _events
    cdef object _timers
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef object _finish
    cdef double _last_received_at
    cdef bint _waits_for_parts
    cdef Decoder _decoder
    cdef readonly int state
    cdef readonly Unfinished unfinished
    cdef readonly bint greeted

    @cython.locals(known=Message)
    cdef Py_ssize_t _take(self, message, double now) except -1
    cdef _hello(self, Message message)
    cdef _goodbye(self, Message message)
    cpdef update_timers(self)
