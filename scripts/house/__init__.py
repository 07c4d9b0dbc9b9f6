"""The source tree in numbers: size of its folders, their imports, and files that a reader opens."""
