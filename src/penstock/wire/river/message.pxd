cimport cython


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class Message:
    cdef public str id
    cdef public str from_
    cdef public str to
    cdef public long long seq
    cdef public long long ack
    cdef public str stream_id
    cdef public bytes encoded
    cdef public long long control_flags
    cdef public bytes payload
    cdef public bytes ok_payload
    cdef public str service_name
    cdef public str procedure_name
    cdef public dict tracing
    cdef public object fault
