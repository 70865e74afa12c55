import cython

from ..core.streams cimport Stream, StreamTable
from ..events cimport Failed
from ..payload cimport Payload
from ..wire.rsocket.frames cimport Frame
from .outbound cimport Outbound

cdef int _FAIL
cdef int OPEN


cdef class Refusing:
    cdef list _events
    cdef object _late
    cdef Outbound _outbound
    cdef object _settings
    cdef object _stray
    cdef StreamTable _streams
    cdef public object granting
    cdef public object reassembly
    cdef public dict partials
    cdef Py_ssize_t _max_metadata_bytes

    cpdef stray(self, double now, Py_ssize_t count=*)
    cpdef forget(self, Stream stream)
    cpdef refuse(self, Stream stream, int code, error)
    @cython.locals(limit=Py_ssize_t, metadata=bytes)
    cdef _check_metadata(self, Payload payload)
    cdef _fail(self, Stream stream, error)
