"""The family of reactive-streams-io: one version, 0. May import the top files, `wire` and `core`."""
