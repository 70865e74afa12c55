import cython

from ..events cimport Canceled, Completed, Event, Failed, ItemReceived, item_received, requested
from ..account cimport Account
from ..payload cimport Payload
from ..wire.river.message cimport Message
from .outbound cimport Outbound, Sequence
from .streams cimport RiverStream, RiverStreams

cdef int CANCEL, CLOSE, OPENS, DONE, OPEN, ITEM_BYTES
cdef str GOODBYE, REHANDSHAKE


@cython.final
cdef class Inbound:
    cdef object _settings
    cdef object _codec
    cdef bint _is_client
    cdef str _peer
    cdef bytes _close
    cdef RiverStreams _streams
    cdef list _events
    cdef Outbound _outbound
    cdef Sequence _sequence
    cdef object _handshake
    cdef object _finish
    cdef Account _account
    cdef public bint draining
    cdef readonly bint peer_closing
    cdef readonly Py_ssize_t held_bytes
    cdef readonly Py_ssize_t rejected
    cdef public object kind_of

    cpdef receive(self, Message message)
    @cython.locals(stream=RiverStream, flags=int, done=bint, body=bytes)
    cdef _response(self, Message message)
    cdef _server_ended(self, RiverStream stream)
    cdef bint _of_session(self, Message message) except -1
    cdef bytes _result(self, RiverStream stream, Message message)
    cdef _unusable(self, RiverStream stream, int flags, fault)
    cdef _failed(self, RiverStream stream, int flags, error)
    cpdef end(self, RiverStream stream, error)
    @cython.locals(stream=RiverStream, flags=int, name=str, done=bint)
    cdef _request(self, Message message)
    cdef _client_ended(self, RiverStream stream)
    cdef _unknown(self, Message message, int flags)
    @cython.locals(name=str, service=str, procedure=str, stream=RiverStream, done=bint, sends_items=bint, route=str)
    cdef _open_theirs(self, Message message, int flags)
    cdef _canceled(self, RiverStream stream)
    cdef _invalid(self, str name, text, RiverStream stream=*)
    cpdef refused(self, RiverStream stream, reason)
    @cython.locals(size=Py_ssize_t)
    cdef _item(self, RiverStream stream, ItemReceived event)
    cdef _deliver(self, RiverStream stream, Event event)
    @cython.locals(size=Py_ssize_t)
    cpdef grant(self, RiverStream stream, long long count)
    cpdef stop_reading(self, RiverStream stream)
    cpdef close_if_done(self, RiverStream stream)
    cpdef sent_all(self, RiverStream stream)
    cpdef remove_stream(self, RiverStream stream)
    cpdef drop_held(self, RiverStream stream)
    @cython.locals(body=bytes)
    cdef bint _is_close(self, Message message) except -1
