"""Image registries: digests, logins, manifests."""
