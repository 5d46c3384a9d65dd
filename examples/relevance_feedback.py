"""Find the pictures that a person means: pictures are shown, the person answers, and the search learns from it.

With --person a page in the browser shows the digits and you click the relevant ones. Without it the labels answer.
"""

import sys

from sklearn.datasets import load_digits

from probewise.feedback import FeedbackSession
from probewise.feedback_page import serve

X, y = load_digits(return_X_y=True)
session = FeedbackSession(X, random_state=0)
if "--person" in sys.argv:
    serve(session, X.reshape(-1, 8, 8))
else:
    for number in range(1, 5):
        rows = session.ask(10)
        session.tell(rows, y[rows] == 3)
        print(f"round {number}: {(y[rows] == 3).sum()} of {len(rows)} relevant")
print(session)
session.save("session.json")  # FeedbackSession.resume("session.json", X) continues
