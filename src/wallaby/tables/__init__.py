"""Tables: files, their footers and formats, the file systems that hold them, and reading what a query needs."""
