"""Spans of a document's body that are embedded and retrieved as units: fixed and structural."""
