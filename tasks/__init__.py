"""Steps of the flows, one effect each, with retries and progress; `moorage` decides."""
