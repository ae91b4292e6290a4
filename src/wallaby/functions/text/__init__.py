"""Text, binary values, and encodings in them."""
