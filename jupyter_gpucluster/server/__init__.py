"""The Jupyter server extension: REST routes and the dashboard proxy."""
