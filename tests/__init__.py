"""The tests; a package of their own so that no installed one of that name is found first."""
