"""The core: values, operators and graphs; how they are declared, found, run and differentiated."""
