"""One effect each: retries, time-outs, progress, artifacts. The decisions are in `moorage`."""
