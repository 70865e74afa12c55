from libc.stdint cimport int64_t

from ...payload cimport PayloadRun
from ..framing cimport Deframer

cpdef bytes pack(long long stream_id, int kind, long long request_n, bytes metadata, bytes data, int own)
cpdef bytes pack_head(long long stream_id, int kind, bytes metadata, Py_ssize_t data_bytes, int own)
cpdef list pack_run(
    long long stream_id, int kind, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t limit, int own
)
cpdef PayloadRun take_run(Deframer deframer, int64_t stream_id, Py_ssize_t limit)
