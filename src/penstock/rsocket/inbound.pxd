import cython

from ..core.streams cimport Stream, StreamTable
from ..events cimport Canceled, Completed, CreditGranted, Failed, ItemReceived, Requested, RunReceived
from ..payload cimport Payload, PayloadRun
from ..wire.frames cimport Frame
from .metadata cimport Router
from .outbound cimport Outbound

cdef int _PAYLOAD, _REQUEST_N, _CANCEL, _ERROR, _REQUEST_RESPONSE, _REQUEST_CHANNEL, _REQUEST_SUB, _METADATA_PUSH
cdef int _CALL, _FIRE, _CHANNEL, _COMPLETE, _FAIL, _CANCELED
cdef int OPEN, COMPLETE, FOLLOWS, NEXT


cdef class Inbound:
    cdef list _events
    cdef object _late
    cdef object _opens
    cdef Outbound _outbound
    cdef object _resets
    cdef object _settings
    cdef object _stray
    cdef StreamTable _streams
    cdef bint _lenient
    cdef public bint drafts
    cdef public bint draining
    cdef public bint first_draft
    cdef public object granting
    cdef public object reassembly
    cdef public dict partials
    cdef public Router router
    cdef Py_ssize_t _max_metadata_bytes
    cdef Py_ssize_t _max_open_rate
    cdef Py_ssize_t _max_streams

    @cython.locals(type=int)
    cpdef frame(self, Frame frame, double now)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef run(self, stream_id, PayloadRun run, double now)
    cpdef stray(self, double now, Py_ssize_t count=*)
    cpdef forget(self, Stream stream)
    cpdef refuse(self, Stream stream, int code, error)
    @cython.locals(stream_id="long long")
    cdef _request(self, Frame frame, double now)
    @cython.locals(done=bint, stream=Stream, credit="long long", route=str)
    cdef _open(self, Frame frame, Payload payload, double now)
    @cython.locals(stream=Stream, flags=int, sending=bint)
    cdef _payload(self, Frame frame, double now)
    @cython.locals(sending=bint)
    cdef _item(self, Stream stream, Payload payload, bint done)
    @cython.locals(limit=Py_ssize_t, metadata=bytes)
    cdef _check_metadata(self, Payload payload)
    @cython.locals(stream=Stream, count="long long")
    cdef _request_n(self, Frame frame, double now)
    @cython.locals(stream=Stream, over=bint)
    cdef _cancel(self, stream_id, bytes metadata, double now)
    cdef _fail(self, Stream stream, error)
