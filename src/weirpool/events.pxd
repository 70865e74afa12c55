cimport cython

from .payload cimport Payload, PayloadRun


# Ids, kinds, routes and payloads refer to nothing else, so these events take no part in garbage collection.
@cython.no_gc
cdef class Event:
    cdef public object stream_id


cdef class Established(Event):
    cdef public object payload
    cdef public object metadata_mime
    cdef public object data_mime
    cdef public bint strict
    cdef public bint understood


@cython.no_gc
cdef class Requested(Event):
    cdef public object kind
    cdef public str route
    cdef public Payload payload
    cdef public object credit
    cdef public bint done


@cython.no_gc
cdef class ItemReceived(Event):
    cdef public Payload payload
    cdef public bint done


cdef class RunReceived(Event):
    cdef public PayloadRun run


@cython.locals(event=Requested)
cpdef Requested requested(stream_id, kind, str route, Payload payload, credit, bint done)
@cython.locals(event=ItemReceived)
cpdef ItemReceived item_received(stream_id, Payload payload, bint done)
@cython.locals(event=RunReceived)
cpdef RunReceived run_received(stream_id, PayloadRun run)


cdef class Completed(Event):
    pass


cdef class Failed(Event):
    cdef public object error


cdef class Canceled(Event):
    cdef public bint done
    cdef public bytes metadata


cdef class CreditGranted(Event):
    cdef public object count


cdef class LeaseGranted(Event):
    cdef public object requests
    cdef public object ttl
    cdef public object metadata


cdef class MetadataPushed(Event):
    cdef public bytes metadata


cdef class Draining(Event):
    pass


cdef class Unlinked(Event):
    cdef public object error


cdef class Closed(Event):
    cdef public object error
