"""A small model hub on loopback: the protocol of the Hugging Face hub, with faults on demand."""
