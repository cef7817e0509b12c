"""Figures for whoever runs the site: `/operations` for people, `/metrics` for Prometheus."""
