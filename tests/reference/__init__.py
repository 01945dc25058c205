"""The same mathematics written a second time, without the package: what its results are compared with."""
