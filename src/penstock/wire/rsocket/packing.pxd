from ...payload cimport PayloadRun

cpdef bytes pack(long long stream_id, int kind, long long request_n, bytes metadata, bytes data)
cpdef bytes pack_head(long long stream_id, int kind, bytes metadata, Py_ssize_t data_bytes)
cpdef list pack_run(long long stream_id, int kind, PayloadRun run, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t most)
