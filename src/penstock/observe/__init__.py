"""What shows connections to other tools: Prometheus, OpenTelemetry. May import the top files and `aio`.

Each file imports the package of its tool, which the extra `metrics` brings; nothing else needs it. `carriers`, which
needs none, alone also imports `rsocket`: it knows where metadata carries a trace.
"""
