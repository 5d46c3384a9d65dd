"""Find the pictures that a person means: pictures are shown, the person answers, and the search learns from it.

With --person the digits are shown in the terminal and you say which ones are relevant. Without it the labels answer.
"""

import sys

from sklearn.datasets import load_digits

from probewise.feedback import FeedbackSession

X, y = load_digits(return_X_y=True)


def show(row):
    """Draw a digit with characters."""
    for line in X[row].reshape(8, 8):
        print("".join(" .:-=+*#@"[int(value) // 2] * 2 for value in line))


def answer(row):
    if "--person" not in sys.argv:
        return y[row] == 3
    show(row)
    return input("relevant? [y/n] ").startswith("y")


session = FeedbackSession(X, random_state=0)
for number in range(1, 5):
    rows = session.ask(10)
    answers = [answer(row) for row in rows]
    session.tell(rows, answers)
    print(f"round {number}: {sum(answers)} of {len(rows)} relevant")
session.save("session.json")  # FeedbackSession.resume("session.json", X) continues
