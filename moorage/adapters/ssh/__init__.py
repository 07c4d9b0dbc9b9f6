"""SSH tunnels to remote Docker sockets."""
