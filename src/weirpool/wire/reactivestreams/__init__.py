"""Messages of reactive-streams-io version 0."""
