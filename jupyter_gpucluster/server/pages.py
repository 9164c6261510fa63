"""The pages shown in a dashboard's place."""

from __future__ import annotations

WORDS = {
    403: ("Not allowed", "You may not see this dashboard."),
    404: ("No such dashboard", "There is no such cluster, or its dashboard has no such page."),
    405: ("Not possible", "A dashboard can only be looked at."),
    409: (
        "No dashboard now",
        "This cluster is still starting, or has ended. The sidebar says which, and why.",
    ),
    502: ("Refused", "The dashboard pointed to another server, which is not followed."),
    503: (
        "No answer",
        "The scheduler process of this cluster does not answer. Reload this page in a moment.",
    ),
}
FAILED = ("Something went wrong", "The log of the Jupyter server says what.")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
<p>{text}</p>
</body>
</html>
"""


def page(status: int) -> str:
    """Return what to show for a status; nothing of the request is repeated."""
    title, text = WORDS.get(status, FAILED)
    return PAGE.format(title=title, text=text)
