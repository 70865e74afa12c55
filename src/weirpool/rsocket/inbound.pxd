import cython

from ..core.streams cimport Stream, StreamTable
from ..events cimport Canceled, Completed, CreditGranted, item_received, requested, run_received
from ..payload cimport Payload, PayloadRun, payload_of
from ..wire.rsocket.frames cimport Frame
from .extensions.metadata cimport Router
from .lease cimport Leases
from .lifecycle cimport Lifecycle
from .outbound cimport Outbound
from .strays cimport Strays

cdef int _PAYLOAD, _REQUEST_N, _CANCEL, _ERROR, _REQUEST_RESPONSE, _REQUEST_CHANNEL, _REQUEST_SUB, _METADATA_PUSH
cdef int _REQUEST_FNF
cdef int _CALL, _FIRE, _CHANNEL, _COMPLETE, _CANCELED
cdef int OPEN, COMPLETE, FOLLOWS, NEXT


@cython.final
cdef class Inbound:
    cdef Lifecycle _life
    cdef object _settings
    cdef StreamTable _streams
    cdef Outbound _outbound
    cdef list _events
    cdef Leases _leases
    cdef object _reassembly
    cdef dict _partials
    cdef readonly Strays strays
    cdef object _opens
    cdef bint _lenient
    cdef bint _may_follow
    cdef public bint drafts
    cdef public bint draining
    cdef public bint first_draft
    cdef public Router router
    cdef Py_ssize_t _max_open_rate
    cdef Py_ssize_t _max_streams
    cdef Py_ssize_t _max_metadata_bytes

    @cython.locals(type=int)
    cpdef frame(self, Frame frame, double now)
    @cython.locals(type=int)
    cdef _signed_id(self, Frame frame)
    @cython.locals(stream=Stream, count=Py_ssize_t, size=Py_ssize_t)
    cpdef run(self, stream_id, PayloadRun run, double now)
    cdef _request(self, stream_id, Frame frame, double now)
    @cython.locals(done=bint, stream=Stream, number=int, credit="long long", route=str, metadata=bytes)
    cdef _open(self, stream_id, Frame frame, Payload payload)
    @cython.locals(stream=Stream, flags=int, sending=bint)
    cdef _payload(self, stream_id, Frame frame, double now)
    @cython.locals(sending=bint, metadata=bytes)
    cdef _item(self, Stream stream, Payload payload, bint done)
    @cython.locals(stream=Stream, count="long long")
    cdef _request_n(self, stream_id, Frame frame)
    @cython.locals(stream=Stream, over=bint)
    cdef _cancel(self, stream_id, bytes metadata)
