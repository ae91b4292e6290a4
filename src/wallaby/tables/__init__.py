"""Tables: files, their footers and formats, the file systems that hold them, and reading the rows of a query."""
