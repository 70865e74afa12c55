"""The tests. Only this folder is a package; helpers are imported as `from tests.builds import ...`."""
