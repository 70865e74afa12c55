cimport cython

from .half cimport Half

# Without types, they would be objects, and so would all sums with them.
cdef Py_ssize_t FIRST_BYTES, SHORT_BYTES


cdef class Pump(Half):
    cdef public object next_item
    cdef public bint running

    cpdef Py_ssize_t step(self) except? -1
    cpdef burst(self)
    cdef _complete(self)
    cdef _close(self)


cdef class TaskPump(Half):
    cdef public object task
    cdef public object on_credit
    cdef public object waiter
    cdef public bint replaced
    cdef public Py_ssize_t turn

    @cython.locals(sent=Py_ssize_t)
    cpdef Py_ssize_t step(self) except? -1
