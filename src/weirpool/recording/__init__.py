"""Recordings: what passed between clients and a server, in a file that can be served again.

May import: top, access, aio and bridging.
"""
