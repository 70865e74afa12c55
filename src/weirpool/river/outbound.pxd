import cython

from ..account cimport Account
from ..core.outbox cimport Outbox
from ..payload cimport Payload
from ..wire.river.scanning cimport is_body
from ..wire.river.writing cimport Writer
from .streams cimport RiverStream, RiverStreams

cdef int ACK, CANCEL, CLOSE, OPENS, PREFIX_BYTES, DONE, OPEN
cdef Py_ssize_t ITEM_BYTES
cdef int _FIRE, _STREAM, _UPLOAD, _CHANNEL


@cython.final
cdef class Sequence:
    cdef Py_ssize_t _max_messages
    cdef Py_ssize_t _max_bytes
    cdef object _unacked
    cdef Py_ssize_t _kept
    cdef public long long seq
    cdef public long long ack
    cdef public Py_ssize_t unacked_bytes
    cdef public Py_ssize_t room
    cdef public long long covered
    cdef public long long reserved
    cdef public long long private
    cdef Account _account
    cdef Py_ssize_t _booked

    cpdef long long reported(self)
    cpdef bint over(self)
    cpdef void sent(self, bytes message) except *
    @cython.locals(count="long long", message=bytes)
    cpdef void acknowledged(self, long long ack) except *
    @cython.locals(room=Py_ssize_t, held=Py_ssize_t, account=Account)
    cdef void _measure(self) noexcept


@cython.final
cdef class Outbound:
    cdef object _settings
    cdef object _codec
    cdef bint _is_json
    cdef bint _is_client
    cdef str _peer
    cdef bytes _heartbeat
    cdef RiverStreams _streams
    cdef list _events
    cdef object _finish
    cdef public Py_ssize_t max_sent_bytes
    cdef Py_ssize_t _uncounted
    cdef Py_ssize_t _uncounted_bytes
    cdef Py_ssize_t _request_after
    cdef Py_ssize_t _request_after_bytes
    cdef Py_ssize_t _room_to_wake
    cdef readonly Writer writer
    cdef readonly Sequence sequence
    cdef public Outbox outbox
    cdef public bint linked
    cdef public bint v1_1
    cdef public dict starved

    @cython.locals(sequence=Sequence, data=bytes, size=Py_ssize_t, stream=RiverStream)
    cpdef send_message(
        self, bytes name, int flags, bytes body, bint wrap_ok=*, str route=*, dict tracing=*
    )
    cpdef count_message(self, Py_ssize_t size)
    cpdef send_heartbeat(self)
    cpdef ack_heartbeat(self)
    @cython.locals(sequence=Sequence)
    cpdef received(self, long long ack, Py_ssize_t size)
    cdef _wake(self, Py_ssize_t room)
    @cython.locals(name=str, encoded=bytes, closed=bint, stream=RiverStream, body=bytes)
    cpdef RiverStream open(self, new_id, kind, str route, Payload payload, long long credit, bint done)
    @cython.locals(stream=RiverStream)
    cpdef RiverStream sending(self, stream_id)
    @cython.locals(stream=RiverStream)
    cpdef RiverStream send(self, stream_id, Payload payload, bint done)
    @cython.locals(data=bytes)
    cpdef stop(self, RiverStream stream, str reason)
    cdef bytes _body_of(self, Payload payload)
