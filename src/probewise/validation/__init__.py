"""What is let in: tables, labels and columnar stores, checked before any work is done."""
