"""Tests of the judges, the search and the page."""
