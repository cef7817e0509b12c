"""Home page, page shell, template tags, static files out of wheels, message catalogues."""
