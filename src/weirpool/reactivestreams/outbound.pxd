import cython

from ..core.outbox cimport Outbox
from ..payload cimport Payload, PayloadRun
from ..wire.reactivestreams.codec cimport Message, next_head, next_run, packed_head, packed_run, part_head
from .streams cimport Publication


@cython.final
cdef class Outbound:
    cdef Py_ssize_t _fragment_bytes
    cdef Py_ssize_t _max_small
    cdef Py_ssize_t _max_bytes
    cdef list _pack
    cdef Publication _packing
    cdef Py_ssize_t _pack_room
    cdef readonly Outbox outbox
    cdef public bint metadata

    cpdef message(self, Message message)
    @cython.locals(size=Py_ssize_t)
    cpdef item(self, Publication publication, Payload payload)
    @cython.locals(at=Py_ssize_t, small=Py_ssize_t)
    cpdef Py_ssize_t run(self, Publication publication, PayloadRun run, Py_ssize_t start, Py_ssize_t stop) except -1
    cpdef part(self, Publication publication)
    @cython.locals(
        view="const int[::1]", size=Py_ssize_t, max_size=Py_ssize_t, room=Py_ssize_t, at=Py_ssize_t, length=Py_ssize_t
    )
    cdef Py_ssize_t _send_small(
        self, Publication publication, PayloadRun run, Py_ssize_t start, Py_ssize_t stop
    ) except -1
    @cython.locals(width=Py_ssize_t, max_items=Py_ssize_t, end=Py_ssize_t)
    cdef Py_ssize_t _send_packed(
        self, Publication publication, PayloadRun run, Py_ssize_t start, Py_ssize_t stop
    ) except -1
    cpdef check_metadata(self, metadata)
    cdef _check_size(self, what, Py_ssize_t size)
    cdef _add_to_pack(self, Publication publication, bytes data)
    @cython.locals(publication=Publication, items=list)
    cdef _send_pack(self)
    cdef _write(self, bytes piece)
    cdef _send_whole(self, Publication publication, bytes data)
    cdef _send(self, bytes head, bytes data)
    cdef bint _begin(self, Publication publication, Payload payload) except -1
