"""`caudal shell`: a prompt over the tables of an application, or over files by name."""
