"""The extensions of RSocket, which define the content of metadata."""
