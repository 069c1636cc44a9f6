"""More than one process, more than one machine: encoding with Ray."""
