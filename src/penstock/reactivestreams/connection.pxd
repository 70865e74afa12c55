import cython

from ..wire.reactivestreams.codec cimport Items, Message
from ..wire.reactivestreams.decoder cimport Decoder
from .inbound cimport Inbound
from .outbound cimport Outbound

cdef int _GOODBYE, _CLOSED, _LEAVING


cdef class Connection:
    cdef object _settings
    cdef bint _is_client
    cdef list _offered
    cdef int _state
    cdef bint _greeted
    cdef bint _said_hello
    cdef double _heard
    cdef bint _waits_for_parts
    cdef list _events
    cdef object _timers
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef Decoder _decoder
    cdef public bint link_wanted
    cdef public bytes identity

    @cython.locals(decoder=Decoder)
    cpdef receive(self, bytes data, double now)
    @cython.locals(known=Message)
    cdef _take(self, message, double now)
    cpdef list take_output(self)
    @cython.locals(happened=list)
    cpdef list take_events(self)
    cdef _hello(self, Message message)
    cpdef _established(self)
    cdef _goodbye(self, Message message)
    cpdef _say_goodbye(self, reason)
    cpdef _after(self)
    cpdef _leave_or_give_up(self, double now)
    cpdef _abort(self, error)
    cpdef _finish(self, error)
