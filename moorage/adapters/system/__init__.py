"""This process and this machine: settings, threads, HTTP, regular expressions."""
