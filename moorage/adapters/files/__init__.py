"""Files that users write, files of models, and private files with logins."""
