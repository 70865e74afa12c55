"""The implementations that are measured, each as an async context manager ``connected(address, tuned)``.

It gives a client with an async method for each scenario that the peer can do: `calls(count, in_flight)`,
`items(count)` and `rows(count)`; codecs have `decode(count)`, `columns(count)` and `encode(count)`. Those with a
network have ``serving(tuned)`` as well, which listens on a free port of loopback and gives its address. `tuned` asks
for the settings that make the peer fastest.
"""

PAYLOAD = bytes(range(128))
"""The data of every request, answer and item."""
BATCH_ROWS = 8192
READ_BYTES = 65_536
"""What a decoder gets at once."""
