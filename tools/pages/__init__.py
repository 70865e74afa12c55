"""The parts of the documentation's site that MkDocs does not have: pictures, charts and diagrams."""
