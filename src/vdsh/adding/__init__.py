"""Files into a store, and later what has changed in them: `vdsh add`."""

from vdsh.adding.run import Added, add_files, check_paths

__all__ = ["Added", "add_files", "check_paths"]
