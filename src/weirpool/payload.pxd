cimport cython


@cython.final
@cython.freelist(256)
cdef class Payload:
    cdef public bytes data
    cdef public bytes metadata


@cython.locals(payload=Payload)
cpdef Payload payload_of(bytes data, bytes metadata)


@cython.final
cdef class PayloadRun:
    cdef readonly bytes buffer
    # For items of one width, computed by the first access to `offsets`.
    cdef object _offsets
    cdef readonly Py_ssize_t size
    cdef public bint sound
    cdef readonly Py_ssize_t width
    cdef readonly Py_ssize_t first

    @cython.locals(
        last=Py_ssize_t, p="const unsigned char*", view="const int[::1]", at=Py_ssize_t, first=int, middle=int,
        payload=Payload, width=Py_ssize_t,
    )
    cpdef list payloads(self, Py_ssize_t start=*, stop=*)

    @cython.locals(
        limit=Py_ssize_t, view="const int[::1]", count=Py_ssize_t, size=Py_ssize_t, at=Py_ssize_t, first=int,
        middle=int, end=int,
    )
    cpdef Py_ssize_t check(self, Py_ssize_t start, Py_ssize_t stop) except -1

    @cython.locals(size=Py_ssize_t, first=Py_ssize_t, run=PayloadRun)
    cpdef PayloadRun part(self, Py_ssize_t start, Py_ssize_t stop)


@cython.locals(run=PayloadRun)
cpdef PayloadRun fixed_run(bytes buffer, Py_ssize_t width, Py_ssize_t first, Py_ssize_t size)
