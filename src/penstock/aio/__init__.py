"""The asyncio peer: client, server, streams, handlers. May import the top files, `dialects` and `transports`."""
