"""Inspection of plans: explanations, profiles, estimates, memory use, checks, and monitors."""

from __future__ import annotations
