import cython
from libc.stdint cimport int64_t

from ..events cimport item_received, requested, run_received
from ..payload cimport Payload, PayloadRun
from ..wire.reactivestreams.codec cimport Items, Message
from .outbound cimport Outbound
from .streams cimport Publication, Subscription, Subscriptions, add, spend

cdef int64_t UNBOUNDED
cdef int _CALL, _ON_NEXT, _LAST_PART, _SUBSCRIBE


@cython.final
cdef class Inbound:
    cdef object _settings
    cdef Outbound _outbound
    cdef list _events
    cdef dict _element_sizes
    cdef object _opens
    cdef readonly int64_t ignored
    cdef readonly int64_t rejected
    cdef int64_t _serial
    cdef Message _annotated
    cdef dict _handlers
    cdef readonly Subscriptions subscriptions
    cdef readonly dict publications
    cdef readonly dict published
    cdef object _last_id
    cdef public bint draining
    cdef readonly bint peer_closing
    cdef readonly object reassembly

    cpdef message(self, Message message, double now)
    @cython.locals(run=PayloadRun, count=int64_t, demand=int64_t, subscription=Subscription)
    cpdef items(self, Items items)
    cpdef end_subscription(self, Subscription subscription, bint canceled=*)
    cpdef end_publication(self, Publication publication)
    cpdef cancel(self, Subscription subscription)
    cdef _check_annotated(self, int type, subscriber)
    @cython.locals(subscription=Subscription)
    cdef Subscription _receiving(self, int type, subscriber, int64_t count=*)
    @cython.locals(subscription=Subscription)
    cdef _next(self, Message message)
    cdef _item(self, Subscription subscription, Payload payload)
    cdef _deliver(self, Subscription subscription, Payload payload)
    cdef _overrun(self, Subscription subscription)
    cdef int64_t _begin_element(self, Subscription subscription, Message message, double now) except -1
