"""Wu and Zhang 2004: feature selection by balanced information gain, for genes and for relevance feedback."""
