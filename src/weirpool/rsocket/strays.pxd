import cython

from ..core.streams cimport Stream, StreamTable
from ..events cimport Failed
from ..wire.rsocket.frames cimport Frame
from .lease cimport Leases
from .lifecycle cimport Lifecycle
from .outbound cimport Outbound

cdef int _EXT
cdef int _FAIL


@cython.final
cdef class Strays:
    cdef list _events
    cdef Leases _leases
    cdef Outbound _outbound
    cdef object _settings
    cdef StreamTable _streams
    cdef readonly object reassembly
    cdef readonly dict partials
    cdef readonly dict refused
    cdef readonly Py_ssize_t ignored
    cdef readonly Py_ssize_t rejected

    cpdef stray(self, Py_ssize_t count=*)
    cpdef ignore_fragment(self, stream_id, Frame frame)
    cpdef remove_stream(self, Stream stream)
    cpdef refuse(self, Stream stream, int code, error)
    cpdef overrun(self, Stream stream)
    cpdef fail(self, Stream stream, error)
