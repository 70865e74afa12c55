from ..core.write_ahead cimport WriteAhead
from .session cimport RiverSession


cdef class StoredRiverSession(RiverSession):
    cdef readonly WriteAhead _storage
    cdef readonly object begin
    cdef readonly object watch
    cdef readonly object detach
    cdef object _opening
    cdef dict _orphans

    cpdef list take_events(self)
