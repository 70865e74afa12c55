cimport cython


# All fields are integers or bytes, so that no frame takes part in garbage collection. Counts of items and requests are
# objects, because C has no integer for those of all dialects: 64 bits without a sign, and 32 bits with one.
@cython.no_gc
@cython.freelist(64)
cdef class Frame:
    cdef public int type
    cdef public int flags
    cdef public unsigned long long stream_id
    cdef public object request_n
    cdef public bytes metadata
    cdef public int metadata_type
    cdef public bytes data


@cython.no_gc
@cython.final
cdef class SetupFrame(Frame):
    cdef public long long major
    cdef public long long minor
    cdef public long long keepalive_ms
    cdef public long long lifetime_ms
    cdef public bytes token
    cdef public bytes metadata_mime
    cdef public bytes data_mime


@cython.no_gc
@cython.final
cdef class LeaseFrame(Frame):
    cdef public long long ttl_ms
    cdef public unsigned long long ttl_ns
    cdef public object number_of_requests


@cython.no_gc
@cython.final
cdef class KeepaliveFrame(Frame):
    cdef public long long position


@cython.no_gc
@cython.final
cdef class RequestNFrame(Frame):
    pass


@cython.no_gc
@cython.final
cdef class ErrorFrame(Frame):
    cdef public long long code


@cython.no_gc
@cython.final
cdef class ResumeFrame(Frame):
    cdef public long long major
    cdef public long long minor
    cdef public bytes token
    cdef public long long last_received_server_position
    cdef public long long first_available_client_position


@cython.no_gc
@cython.final
cdef class ResumeOkFrame(Frame):
    cdef public long long last_received_client_position


@cython.no_gc
@cython.final
cdef class ExtFrame(Frame):
    cdef public long long extended_type
