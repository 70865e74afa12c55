"""The hot half of a protocol of asyncio's: reads into bytes, and hands them on.

`reading.py` is the same in plain Python, and tells what each function does.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory

from ..errors import LocalError

__all__ = ["READ_BYTES", "ReadBuffer", "Reading"]

READ_BYTES = 131_072

cdef extern from "Python.h":
    int PyBUF_WRITE

cdef Py_ssize_t SIZE = READ_BYTES


cdef class ReadBuffer:
    """Where reads go: the bytes that `take` returns, while nobody else has them."""

    cdef bytes _octets
    cdef object _view

    cpdef object view(self):
        """Return `READ_BYTES` bytes to read into. It is good until `take`."""
        if self._octets is None:
            self._octets = PyBytes_FromStringAndSize(NULL, SIZE)
            self._view = PyMemoryView_FromMemory(PyBytes_AS_STRING(self._octets), SIZE, PyBUF_WRITE)
        return self._view

    cpdef bytes take(self, Py_ssize_t count):
        """Return the first `count` bytes, which were read."""
        cdef bytes octets = self._octets
        if octets is None or not 0 <= count <= SIZE:
            raise LocalError(f"{count} bytes were taken of a read buffer of {0 if octets is None else SIZE}")
        if count < SIZE:
            return PyBytes_FromStringAndSize(PyBytes_AS_STRING(octets), count)
        # They are full, and go as they are: the next read gets bytes of its own.
        self._octets = None
        self._view = None
        return octets


cdef class Reading:
    """What asyncio calls for each read of a :class:`asyncio.BufferedProtocol`."""

    cdef public object receiver
    cdef ReadBuffer _buffer

    def __init__(self, receiver, ReadBuffer buffer not None):
        self.receiver = receiver
        self._buffer = buffer

    def get_buffer(self, sizehint):
        """Return where to read to."""
        return self._buffer.view()

    def buffer_updated(self, Py_ssize_t nbytes):
        """Hand on what was read."""
        self.receiver.received(self._buffer.take(nbytes))
