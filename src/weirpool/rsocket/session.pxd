import cython

from ..core.streams cimport Stream, StreamTable
from ..account cimport Account
from ..payload cimport Payload, PayloadRun, payload_of
from .control cimport Control
from .inbound cimport Inbound
from .lease cimport Leases
from .lifecycle cimport Lifecycle
from .link cimport Link
from .outbound cimport Outbound
from .strays cimport Strays

cdef int OPEN, OPENED, DRAINING, CLOSED, ENDLESS
cdef int _COMPLETE, _FAIL, _CANCELED
cdef int _CALL, _FIRE, _STREAM, _UPLOAD, _CHANNEL, _METADATA_PUSH


cdef class RSocketSession:
    cdef object _settings
    cdef readonly Account account
    cdef object _dialect
    cdef bint _own_ids
    cdef dict _requests
    cdef long long _max_initial_n
    cdef object _store
    cdef Lifecycle _life
    cdef list _events
    cdef StreamTable _streams
    cdef Outbound _outbound
    cdef Leases _leases
    cdef Strays _strays
    cdef Inbound _inbound
    cdef Control _control
    cdef Link _link
    cdef object _promised
    cdef public bint link_wanted
    cdef public bytes identity

    cpdef bint receive(self, bytes data, double now, Py_ssize_t frames=*) except -1
    cpdef list take_output(self)
    @cython.locals(events=list, taken=list)
    cpdef list take_events(self)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef send_run(self, stream_id, PayloadRun run, Py_ssize_t start=*)
    @cython.locals(
        stream=Stream, number=int, flags=int, metadata=bytes, request_n="long long", initial_n="long long"
    )
    cpdef open(self, kind, str route, Payload payload, long long credit=*, bint done=*, bint endless=*)
    @cython.locals(stream=Stream)
    cpdef send(self, stream_id, Payload payload, bint done=*)
    @cython.locals(stream=Stream)
    cpdef credit(self, stream_id)
    cpdef restore_from(self, checkpoint)
    cdef Stream _sending(self, stream_id)
    cdef _end(self, Stream stream, int signal)
