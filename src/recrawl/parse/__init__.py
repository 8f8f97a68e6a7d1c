"""Parses foreign bytes within limits of time and memory."""
