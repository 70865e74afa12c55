import cython

from ..account cimport Account
from .exchanges cimport Exchanges
from .flow cimport Flow
from .sizes cimport size_of
from .slots cimport Slots


@cython.final
cdef class LateRequests:
    cdef Account _account
    cdef object _begin
    cdef Exchanges _exchanges
    cdef Flow _flow
    cdef Slots _slots
    cdef object _streams
    cdef readonly bint active

    cpdef start(self)
    cpdef list sift(self, list events)
    cpdef step(self)
    cdef list _remove(self, stream_id)
