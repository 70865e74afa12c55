"""The implementations to measure, each as an async context manager ``connected(address, tuned)``.

It yields a client with an async method for each scenario that the peer supports: `calls(count, in_flight)`,
`items(count)` and `rows(count)`; codecs have `decode(count)`, `columns(count)` and `encode(count)`. Peers with a
network also have ``serving(tuned)``, which listens on a free loopback port and yields its address. `tuned` selects the
fastest settings of the peer.
"""

PAYLOAD = bytes(range(128))
"""The data of every request, response and item."""
BATCH_ROWS = 8192
READ_BYTES = 65_536
"""The size of each read of a decoder."""
