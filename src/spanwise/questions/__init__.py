"""Anchors and the questions that people write with them."""
