cpdef bytes varint(value, str name=*)
