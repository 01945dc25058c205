"""bmrm."""
