"""The paper: its settings and, one by one, its tables and figures."""
