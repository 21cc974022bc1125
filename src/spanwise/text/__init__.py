"""Decoding, sentences with exact offsets, token counts."""
