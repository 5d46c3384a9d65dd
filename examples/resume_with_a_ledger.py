"""Stopped and resumed: a run kept in a ledger goes on where it was and ends as if it had never stopped."""

import tempfile
from pathlib import Path

from probewise import DAF
from probewise.datasets import make_madelon
from probewise.engine.ledger import LedgerError
from probewise.stopping import MaxProbes

data = make_madelon(n_samples=300, n_features=100, random_state=0)

with tempfile.TemporaryDirectory() as folder:
    ledger = Path(folder) / "run.ledger"
    first = DAF(20, stop=MaxProbes(500), ledger=ledger, random_state=0).fit(data.X, data.y)
    print(f"{first.n_probes_:,} probes: {first.stop_reason_}; the ledger has {ledger.stat().st_size:,} bytes")

    later = DAF(20, stop=MaxProbes(2000), ledger=ledger, random_state=0, n_jobs=2).fit(data.X, data.y)
    whole = DAF(20, stop=MaxProbes(2000), random_state=0).fit(data.X, data.y)
    print("resumed equals uninterrupted, to the bit:", later.scores_.tobytes() == whole.scores_.tobytes())

    agree = (later.run_.coefficient("daf1")[0].argsort()[-20:, None] == later.scores_.argsort()[-20:]).any(axis=1).sum()
    print(f"DAF1, replayed without a further probe, shares {agree} of its top 20 with DAF0")

    try:
        DAF(20, stop=MaxProbes(4000), ledger=ledger, random_state=0).fit(data.X[:, ::-1], data.y)
    except LedgerError as error:
        print("other data are refused:", str(error).replace(folder, ""))
