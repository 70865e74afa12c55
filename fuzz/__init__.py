"""Coverage-guided fuzzing of all decoders: compiled = plain = an independent decoder, with sanitizers.

``make fuzz`` runs it. It tests the package from outside, so nothing in `src` imports it.
"""
