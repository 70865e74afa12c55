"""The asyncio layer: clients, servers, streams, handlers. May import the top files, `protocols` and `transports`."""
