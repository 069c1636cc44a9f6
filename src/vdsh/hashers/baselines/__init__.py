"""The methods that VDSH is compared with, a file each."""
