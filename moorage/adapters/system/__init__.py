"""This process and this machine: settings, threads, parallel work, HTTP, traces."""
