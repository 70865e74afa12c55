"""A service to try Penstock with, which `penstock playground` runs. May import the public names."""
