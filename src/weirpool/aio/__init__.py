"""The asyncio layer: clients, servers, streams, handlers. May import top files, `values`, `protocols`, `transports`."""
