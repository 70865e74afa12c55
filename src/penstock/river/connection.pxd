from ..core.outbox cimport Outbox
from ..wire.framing cimport Deframer
from ..wire.river.writing cimport Writer
from .sequence cimport Sequence
from .streams cimport RiverStream, RiverStreams

import cython

cdef int ACK, CANCEL, CLOSE, DONE, PREFIX_BYTES


cdef class Connection:
    cdef object _settings
    cdef readonly object _codec
    cdef bint _is_json
    cdef bint _is_client
    cdef bint _unconfirmed
    cdef bint _unproven
    cdef Py_ssize_t _unproven_bytes
    cdef readonly str us
    cdef readonly str peer
    cdef readonly str session_id
    cdef Writer _writer
    cdef bytes _heartbeat
    cdef bytes _close
    cdef public bytes _metadata
    cdef bint _old
    cdef readonly int _state
    cdef readonly int _link
    cdef bint _established
    cdef int _hung_up
    cdef bint _asking
    cdef bint _renewed
    cdef public object renew
    cdef bint _first
    cdef object _promised
    cdef bint _taken_over
    cdef str _answered_as
    cdef double _heard
    cdef double _looked
    cdef long long _spoken
    cdef double _look_after
    cdef long long _worn_at
    cdef int _wear
    cdef double _moved_at
    cdef readonly list _events
    cdef Outbox _outbox
    cdef object _timers
    cdef Sequence _sequence
    cdef readonly RiverStreams _streams
    cdef Py_ssize_t _max_frame_bytes
    cdef Py_ssize_t _max_sent_bytes
    cdef Deframer _deframer
    cdef readonly Py_ssize_t _held_bytes
    cdef Py_ssize_t _passed
    cdef Py_ssize_t _passed_bytes
    cdef Py_ssize_t _prompt_after
    cdef Py_ssize_t _prompt_after_bytes
    cdef Py_ssize_t _ample
    cdef set _starved
    cdef bint _opening
    cdef object _kind_of
    cdef object _sessions
    cdef public bint link_wanted
    cdef public bytes identity
    cdef public object linked_at
    cdef public bint excused

    cpdef list take_output(self)
    @cython.locals(events=list)
    cpdef list take_events(self)
    cdef list _hold_requests(self, list events)
    cpdef str _new_id(self)
    @cython.locals(sequence=Sequence, data=bytes, size=Py_ssize_t)
    cpdef _post(self, bytes name, int flags, bytes body, bint well=*, str route=*, dict tracing=*)
    cdef _pass(self, Py_ssize_t octets)
    cpdef _beat(self)
    @cython.locals(sequence=Sequence, room=Py_ssize_t)
    cdef _acknowledged(self, long long ack)
    cdef _forget(self, RiverStream stream)
