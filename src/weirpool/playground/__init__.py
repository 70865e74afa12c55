"""A service to try Weirpool with, which `weirpool playground` runs. May import the public names."""
