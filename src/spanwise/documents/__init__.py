"""Documents, questions and corpora as every later room sees them, and their tables."""
