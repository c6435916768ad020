"""The running robot: processes, the paced loop, the operator."""
