"""Mocks: services that answer with plausible values of their schemas.

May import: top, schema and aio.
"""
