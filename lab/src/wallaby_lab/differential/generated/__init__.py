"""What is compared: tables of odd values, expressions and queries over them, made from seeds and from examples."""
