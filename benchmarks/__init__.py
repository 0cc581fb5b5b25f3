"""Measurements of speed and quality, as ratios taken in one run."""
