import cython

from ..core.streams cimport StreamTable
from ..payload cimport Payload, PayloadRun
from ..wire.codec cimport Codec
from ..wire.frames cimport Frame
from ..wire.framing cimport Deframer
from .inbound cimport Inbound
from .metadata cimport Router
from .outbound cimport Outbound

cdef int _FIRST_COUNTED, _LAST_COUNTED


cdef class Connection:
    cdef object _settings
    cdef object _dialect
    cdef bint _is_client
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
    cdef Router _router
    cdef Deframer _deframer
    cdef long long _received
    cdef long long _reported
    cdef object _promised
    cdef public bint link_wanted

    cpdef receive(self, bytes data, double now)
    cpdef list take_output(self)
    @cython.locals(events=list, taken=list)
    cpdef list take_events(self)
    @cython.locals(deframer=Deframer, codec=Codec, buffer=bytes, start=Py_ssize_t, run=PayloadRun, frame=Frame)
    cdef _receive_frame(self, double now)
    cdef _after(self)
