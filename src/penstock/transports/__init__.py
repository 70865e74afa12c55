"""Links over which bytes travel, one file a transport. May import the top files; asyncio starts here."""
