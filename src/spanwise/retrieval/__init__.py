"""Ranked lists: flat, routed and lexical."""
