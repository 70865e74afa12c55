from ..core.streams cimport StreamTable
from ..payload cimport Payload
from ..wire.codec cimport Codec
from ..wire.framing cimport Deframer
from .inbound cimport Inbound
from .extensions.metadata cimport Router
from .outbound cimport Outbound

import cython


cdef class Connection:
    cdef object _settings
    cdef object _dialect
    cdef bint _is_client
    cdef bint _own_ids
    cdef bytes _token
    cdef object _store
    cdef Payload _setup
    cdef Codec _codec
    cdef list _events
    cdef object _timers
    cdef int _state
    cdef int _link
    cdef bint _established
    cdef StreamTable _streams
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef object _keepalive
    cdef object _honoring
    cdef object _granting
    cdef Router _router
    cdef Deframer _deframer
    cdef long long _received
    cdef long long _reported
    cdef long long _repeated
    cdef bint _unheard
    cdef bint _begins_again
    cdef object _refusal
    cdef object _promised
    cdef double _linked_at
    cdef double _moved_at
    cdef long long _worn_at
    cdef int _wear
    cdef public bint link_wanted
    cdef public bytes identity

    cpdef list take_output(self)
    @cython.locals(events=list, taken=list)
    cpdef list take_events(self)
    cdef _after(self)
