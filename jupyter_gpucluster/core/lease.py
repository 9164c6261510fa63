"""The lease's time limits: the head touches a file, and others see by its time that it lives."""

LEASE_SECONDS = 15.0
"""Interval in which a head renews its lease."""
LATE_SECONDS = 45.0
"""A lease that is older has been missed twice."""
LAPSED_SECONDS = 120.0
"""A reader on another host then calls the head unreachable: lease period, its renewal once missed,
and a minute of attribute cache."""
GUARD_SECONDS = 180
"""The guard in a job's script then ends the job: the lease was not renewed, or not readable, for so
long.  NFS may show a file's time a minute late."""
