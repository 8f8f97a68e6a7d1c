"""Backup, restore and verification of a workspace."""
