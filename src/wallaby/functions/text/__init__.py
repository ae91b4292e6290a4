"""Text, binary values, and what is written in them."""
