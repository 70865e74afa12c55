cimport cython

from ..payload cimport Payload, PayloadRun


cdef Py_ssize_t ITEM_BYTES, RUN_ITEM_BYTES


@cython.locals(size=Py_ssize_t, payload=Payload, run=PayloadRun)
cpdef Py_ssize_t size_of(entry) except -1
