"""The asyncio peer: client, server, streams, handlers. May import the top files, `protocols` and `transports`."""
