"""The extensions of RSocket, which say what the bytes of metadata mean."""
