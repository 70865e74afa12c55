"""Small programs for the development of Penstock."""
