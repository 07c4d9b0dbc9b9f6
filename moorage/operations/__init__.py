"""What is done with releases over time: comparing, redeploying, reconciling."""
