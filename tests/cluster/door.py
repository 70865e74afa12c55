"""Serves a journal to Spark: ``penstock serve tests/cluster/door.py:service URL``."""

from __future__ import annotations

import os

from penstock import Service
from penstock.serving import serve_journal

service = Service()
serve_journal(service, os.environ["LAB_JOURNAL"])
