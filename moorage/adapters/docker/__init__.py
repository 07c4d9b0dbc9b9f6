"""Docker Engines: containers, images, volumes and helper containers."""
