"""Container images: the catalogue of known images, and the choice of one."""
