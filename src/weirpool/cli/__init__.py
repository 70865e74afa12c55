"""The command `weirpool`. May import everything, lazily.

Functions raise LocalError for a usage error: an invalid option, a file that cannot be read, a missing package.
"""
