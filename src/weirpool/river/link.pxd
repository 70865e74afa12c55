import cython

from ..core.unfinished cimport Unfinished
from ..wire.framing cimport Deframer
from ..wire.river.message cimport Message
from ..wire.river.scanning cimport scan
from .inbound cimport Inbound
from .outbound cimport Outbound, Sequence
from .streams cimport RiverStreams

cdef int ACK, DOWN, HANDSHAKING, UP, PREFIX_BYTES


@cython.final
cdef class Link:
    cdef object _settings
    cdef object _codec
    cdef bint _is_json
    cdef bint _is_client
    cdef str _us
    cdef str _peer
    cdef object _handshake
    cdef Inbound _inbound
    cdef Outbound _outbound
    cdef Sequence _sequence
    cdef RiverStreams _streams
    cdef list _events
    cdef object _timers
    cdef object _finish
    cdef readonly Unfinished unfinished
    cdef Deframer _deframer
    cdef double _last_received_at
    cdef double _checked_at
    cdef long long _sent_at_check
    cdef double _check_interval
    cdef double _silence_limit
    cdef object _losses
    cdef int _unanswered
    cdef readonly int state
    cdef readonly bint wanted
    cdef readonly bint excused
    cdef readonly object linked_at
    cdef readonly bint confirmed
    cdef public bint on_probation
    cdef public bint taken_over

    @cython.locals(deframer=Deframer, left=Py_ssize_t, more=bint)
    cpdef bint receive(self, bytes data, double now, Py_ssize_t frames=*) except -1
    @cython.locals(buffer=bytes, start=Py_ssize_t, end=Py_ssize_t, message=Message)
    cdef Message _decoded(self, Deframer deframer)
    @cython.locals(sequence=Sequence)
    cdef _receive_message(self, Message message, Py_ssize_t size, double now)
    cdef _out_of_order(self, Message message, double now)
