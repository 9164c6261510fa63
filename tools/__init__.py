"""What the Makefile runs: set-up, JupyterLab, demo and checks, with the standard library."""
