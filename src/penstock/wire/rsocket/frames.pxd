cimport cython


# All fields are plain values or bytes, so that no frame takes part in garbage collection.
@cython.freelist(64)
cdef class Frame:
    cdef public int type
    cdef public int flags
    cdef public long long stream_id
    cdef public unsigned long long request_n
    cdef public bytes metadata
    cdef public int metadata_type
    cdef public bytes data


@cython.final
cdef class SetupFrame(Frame):
    cdef public long long major
    cdef public long long minor
    cdef public long long keepalive_ms
    cdef public long long lifetime_ms
    cdef public bytes token
    cdef public bytes metadata_mime
    cdef public bytes data_mime


@cython.final
cdef class LeaseFrame(Frame):
    cdef public long long ttl_ms
    cdef public unsigned long long ttl_ns
    cdef public unsigned long long number_of_requests


@cython.final
cdef class KeepaliveFrame(Frame):
    cdef public long long position


@cython.final
cdef class RequestNFrame(Frame):
    pass


@cython.final
cdef class ErrorFrame(Frame):
    cdef public long long code


@cython.final
cdef class ResumeFrame(Frame):
    cdef public long long major
    cdef public long long minor
    cdef public bytes token
    cdef public long long last_received_server_position
    cdef public long long first_available_client_position


@cython.final
cdef class ResumeOkFrame(Frame):
    cdef public long long last_received_client_position


@cython.final
cdef class ExtFrame(Frame):
    cdef public long long extended_type
