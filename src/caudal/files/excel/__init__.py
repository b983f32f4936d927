"""Excel workbooks: bounded before they are read, and what the reading library leaves out."""
