"""Arrays, structs and maps."""
