"""Programs of the Makefile: set-up, JupyterLab, demo and checks, with the standard library."""
