"""Classes and who is in them."""
