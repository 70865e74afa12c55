from ..core.write_ahead cimport WriteAhead
from .session cimport RiverSession


cdef class StoredRiverSession(RiverSession):
    cdef readonly WriteAhead _storage
    cdef readonly object begin
    cdef object _opening
    cdef dict _orphans

    cpdef list take_events(self)
