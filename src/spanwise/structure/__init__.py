"""Section trees: what they are, how they are verified, and who makes them."""
