import cython

from ..core.outbox cimport Outbox
from ..core.streams cimport Stream, StreamTable
from ..payload cimport Payload, PayloadRun
from ..wire.codec cimport Codec
from ..wire.frames cimport Frame
from ..wire.framing cimport Deframer
from .inbound cimport Inbound
from .outbound cimport Outbound

cdef int _CALL, _STREAM, _UPLOAD


cdef class RSocketSession:
    cdef object _settings
    cdef object _dialect
    cdef bint _is_client
    cdef Payload _setup
    cdef Codec _codec
    cdef list _events
    cdef object _timers
    cdef int _state
    cdef bint _established
    cdef StreamTable _streams
    cdef Outbound _outbound
    cdef Inbound _inbound
    cdef object _keepalive
    cdef object _router
    cdef Deframer _deframer
    cdef public bint link_wanted

    @cython.locals(deframer=Deframer)
    cpdef receive(self, bytes data, double now)
    cpdef list take_output(self)
    cpdef list take_events(self)
    @cython.locals(stream=Stream, flags=int)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(deframer=Deframer, codec=Codec, buffer=bytes, start=Py_ssize_t, run=PayloadRun, frame=Frame)
    cdef _receive_frame(self, double now)
    cdef Stream _sending(self, stream_id)
    cdef _end(self, Stream stream, signal)
    cdef _after(self)
