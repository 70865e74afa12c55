from libc.stdint cimport int64_t

from ...payload cimport PayloadRun
from ..framing cimport Deframer

cpdef PayloadRun scan(Deframer deframer, int64_t stream_id, Py_ssize_t room)
