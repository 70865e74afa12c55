"""A demo of the whole pipeline on real data. May import everything."""
