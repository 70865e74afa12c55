"""Small programs for the development of Weirpool."""
