"""Resume a run: with a ledger, a stopped run continues and ends exactly like an uninterrupted one."""

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

    resumed = DAF(20, stop=MaxProbes(2000), ledger=ledger, random_state=0, n_jobs=2).fit(data.X, data.y)
    whole = DAF(20, stop=MaxProbes(2000), random_state=0).fit(data.X, data.y)
    print(
        "the resumed run equals the uninterrupted one, to the bit:",
        resumed.scores_.tobytes() == whole.scores_.tobytes(),
    )

    daf1 = resumed.run_.coefficient("daf1")[0]  # computed from the ledger, without further probes
    n_shared = len(set(daf1.argsort()[-20:]) & set(resumed.scores_.argsort()[-20:]))
    print(f"the top 20 of DAF1 and of DAF0 share {n_shared} features")

    try:
        DAF(20, stop=MaxProbes(4000), ledger=ledger, random_state=0).fit(data.X[:, ::-1], data.y)
    except LedgerError as error:
        print("a ledger refuses other data:", str(error).replace(folder, ""))
