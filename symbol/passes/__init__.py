"""Passes: functions from graph to graph, one a file; ``symbol.compile`` lists them in order."""
