import cython

from ..core.streams cimport Stream, StreamTable
from ..events cimport Canceled, Completed, CreditGranted, Failed, ItemReceived, Requested, RunReceived
from ..payload cimport Payload, PayloadRun
from ..wire.frames cimport Frame
from .outbound cimport Outbound

cdef int _PAYLOAD, _REQUEST_N, _CANCEL, _ERROR, _REQUEST_RESPONSE, _REQUEST_CHANNEL, _CALL


cdef class Inbound:
    cdef list _events
    cdef object _late
    cdef object _opens
    cdef Outbound _outbound
    cdef object _resets
    cdef object _settings
    cdef object _stray
    cdef StreamTable _streams
    cdef public bint draining
    cdef public object reassembly
    cdef public object router
    cdef Py_ssize_t _max_metadata_bytes

    @cython.locals(type=int)
    cpdef frame(self, Frame frame, double now)
    @cython.locals(stream=Stream, count=Py_ssize_t)
    cpdef run(self, stream_id, PayloadRun run, double now)
    cpdef stray(self, double now, Py_ssize_t count=*)
    cpdef forget(self, Stream stream)
    cpdef refuse(self, Stream stream, int code, error)
    cdef _request(self, Frame frame, double now)
    @cython.locals(done=bint, stream=Stream)
    cdef _open(self, Frame frame, Payload payload, double now)
    @cython.locals(stream=Stream, flags=int)
    cdef _payload(self, Frame frame, double now)
    cdef _item(self, Stream stream, Payload payload, bint done)
    @cython.locals(stream=Stream)
    cdef _request_n(self, Frame frame, double now)
    @cython.locals(stream=Stream, over=bint)
    cdef _cancel(self, stream_id, double now)
    cdef _fail(self, Stream stream, error)
