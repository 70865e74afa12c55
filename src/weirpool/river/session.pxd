import cython

from ..account cimport Account
from ..payload cimport Payload, PayloadRun
from .backlog cimport Backlog
from .inbound cimport Inbound
from .link cimport Link
from .outbound cimport Outbound, Sequence
from .streams cimport RiverStream, RiverStreams

cdef int CLOSE, OPENED, CLOSED, DRAINING, UP, OPEN


cdef class RiverSession:
    cdef object _side
    cdef object _settings
    cdef readonly Account account
    cdef readonly object _codec
    cdef bint _is_client
    cdef readonly str us
    cdef readonly str peer
    cdef readonly str session_id
    cdef readonly bytes secret
    cdef public bytes identity
    cdef readonly int _state
    cdef readonly list _events
    cdef object _timers
    cdef readonly RiverStreams _streams
    cdef readonly Outbound _outbound
    cdef readonly Inbound _inbound
    cdef readonly Link _link
    cdef readonly Backlog _backlog
    cdef readonly object _handshake
    cdef readonly Sequence sequence
    cdef object _sessions
    cdef str _answered_as
    cdef object _promise
    cdef readonly object item_errors
    cdef readonly object progressed
    cdef readonly object shed
    cdef readonly object next_timer
    cdef readonly object take_output

    @cython.locals(more=bint)
    cpdef bint receive(self, bytes data, double now, Py_ssize_t frames=*) except -1
    @cython.locals(events=list, taken=list, backlog=Backlog)
    cpdef list take_events(self)
    cpdef str _new_id(self)
    @cython.locals(stream=RiverStream)
    cpdef open(self, kind, str route, Payload payload, long long credit=*, bint done=*, bint endless=*)
    @cython.locals(ended=RiverStream)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(sent=Py_ssize_t, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(room=Py_ssize_t)
    cpdef credit(self, stream_id)
    cdef _done(self, RiverStream stream)
    cdef _end_if_drained(self)
