"""Where a model runs: snapshot of the fleet, claims, the fit, the choice and its reasons."""
