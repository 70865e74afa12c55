"""Load: sends many requests to a server and measures latency and throughput, in bounded memory.

May import: top and aio.
"""
