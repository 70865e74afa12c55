"""Typed columns from items of JSON, MessagePack, CBOR, Avro, Protobuf or Arrow. May import the top files and `values`.

Arrow in, Arrow out: a decoder gets an array of items and returns record batches with the fields of a schema. It never
fails because of an item: it reports malformed ones, with the reason, and their fields are null.
"""
