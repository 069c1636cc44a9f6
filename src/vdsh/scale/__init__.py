"""More than one process, more than one machine: encoding and training with Ray or torchrun."""
