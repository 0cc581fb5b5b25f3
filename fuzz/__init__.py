"""Mutated files for every reader and for model files: ``python -m fuzz``."""
