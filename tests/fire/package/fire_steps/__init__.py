"""Eight small steps, brought by another package: what builds under fire are made of."""
