"""Several hosts on one machine, with a network between them that fails on order."""
