"""Operations on releases over time: comparing, redeploying, reconciling."""
