"""What is no function of its own: calls of Java's methods, tags and other people's code."""
