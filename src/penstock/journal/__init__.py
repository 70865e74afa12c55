"""Durable logs of items. May import the top files and `wire`; `collect` alone also `aio`."""
