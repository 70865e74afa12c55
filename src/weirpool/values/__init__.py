"""Values of JSON, MessagePack and CBOR, read by type as writers in other languages mean them. May import the top files.

A decoder reads most data in one step, with msgspec alone. What that refuses or would round is read again by
:mod:`weirpool.values.conversion`, which knows the other forms that values have.
"""
