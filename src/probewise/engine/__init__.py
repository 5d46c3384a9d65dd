"""The heart: which probes there are, how they are scored and kept, and what a finished run says."""
