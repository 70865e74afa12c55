"""Protocol-independent mechanisms: streams, credit, fragments, timers. May import the top files only."""
