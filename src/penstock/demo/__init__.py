"""The main job on real data, end to end. May import everything."""
