"""Frames of the RSocket family: RSocket 1.0 and its ancestors, ReactiveSocket 0.2 and 0.0."""
