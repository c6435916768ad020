"""The command line: wires everything, decides nothing."""
