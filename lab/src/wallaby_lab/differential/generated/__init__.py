"""Generate what is compared: tables of odd values, and expressions and queries over them, from seeds and examples."""
