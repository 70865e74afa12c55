cimport cython

from ...payload cimport PayloadRun


@cython.final
@cython.freelist(64)
cdef class Message:
    cdef public int type
    # Users of the class may set any values; `encode` checks them.
    cdef public object subscriber
    cdef public object number
    cdef public bytes data
    cdef public tuple ids

    cpdef tuple _fields(self)


@cython.final
@cython.freelist(64)
cdef class Items:
    cdef public object subscriber
    cdef public PayloadRun run
    cdef public Py_ssize_t announced


cpdef bytes varint(value, str name=*)
cpdef bytes next_head(subscriber, Py_ssize_t length)
cpdef bytes packed_head(subscriber, Py_ssize_t count)
cpdef bytes part_head(subscriber, element, Py_ssize_t length, bint last)

@cython.locals(
    head=bytes, view="const int[::1]", p=bytes, parts=list, at=Py_ssize_t, middle=Py_ssize_t, end=Py_ssize_t
)
cpdef bytes next_run(subscriber, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)

@cython.locals(
    head=bytes, view="const int[::1]", p=bytes, parts=list, at=Py_ssize_t, width=Py_ssize_t, first=Py_ssize_t
)
cpdef bytes packed_run(subscriber, PayloadRun run, Py_ssize_t start, Py_ssize_t stop)
