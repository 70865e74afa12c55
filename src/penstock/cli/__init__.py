"""The command `penstock`, one file a verb. May import everything, lazily."""
