"""Trusted view; one reader for each source format, to documents and questions."""
