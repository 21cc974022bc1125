"""Does the inference keep what it promises? Simulated studies with known effects."""
