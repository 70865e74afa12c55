import cython

from ..events cimport Event

cdef int OPEN
cdef int _STREAM, _UPLOAD, _CHANNEL


@cython.final
@cython.freelist(256)
@cython.no_gc
cdef class RiverStream:
    cdef public object number
    cdef public str name
    cdef public bytes encoded
    cdef public bint sends_items
    cdef public bint answers_items
    cdef public int inbound
    cdef public int outbound
    cdef public bint reads_stopped
    cdef public bint reports_errors
    cdef public Py_ssize_t granted
    cdef public object held
    cdef public object held_seqs
    cdef public long long opened_seq
    cdef public long long seen_until
    cdef public int kind
    cdef public Py_ssize_t held_bytes

    cpdef hold(self, Event event, long long seq)
    cpdef drop_held(self)


@cython.final
cdef class RiverStreams:
    cdef Py_ssize_t _memory
    cdef readonly dict by_number
    cdef readonly dict by_name
    cdef readonly object finished
    cdef Py_ssize_t _last

    cpdef RiverStream get(self, number)
    cpdef RiverStream named(self, str name)
    @cython.locals(stream=RiverStream)
    cpdef RiverStream sending(self, number)
    @cython.locals(stream=RiverStream)
    cpdef RiverStream open(self, str name, bytes encoded, int kind, int inbound, int outbound)
    cpdef void close(self, RiverStream stream)
    cpdef finish(self, str name)
