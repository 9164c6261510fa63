"""Tables: what a batch system's words mean for a user, and what to change."""

from __future__ import annotations
