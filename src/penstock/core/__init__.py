"""Mechanisms that know no protocol: streams, credit, fragments, timers. May import the top files only."""
