"""The laboratory of rolling restarts: servers in processes of their own, replaced under load."""
