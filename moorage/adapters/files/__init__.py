"""Files that users write or that hold logins."""
