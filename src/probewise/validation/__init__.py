"""Input validation: X, y, sample weights, parameters, and tables read by columns."""
