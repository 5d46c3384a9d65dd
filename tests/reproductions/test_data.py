"""Data recipes: checksums of the real files, builders on raw files made from them, and one sentence for each fault."""

import bz2
import csv
import io
import sys
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat
from sklearn.datasets import load_iris

from probewise.datasets import load
from reproductions import PAPERS, data
from reproductions.data import (
    CANCEROUS,
    RECIPES,
    SETS,
    DataError,
    checksum,
    from_alizadeh,
    from_golub,
    from_libsvm,
    from_mat,
    from_reuters,
    one_set,
    prepare,
    save,
)


def test_every_data_set_of_a_paper_has_a_recipe_and_a_checksum():
    assert set(SETS) == set(PAPERS)
    assert {name for names in SETS.values() for name in names} == set(RECIPES)
    assert all(len(recipe.checksum) == 16 and recipe.address.startswith("https://") for recipe in RECIPES.values())


def test_a_checksum_does_not_depend_on_order_type_or_format():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (20, 4)), np.arange(20) % 3
    order = rng.permutation(20)
    same = [checksum(X, y), checksum(X[order].astype(float), y[order]), checksum(sp.csr_array(X), y.astype(str))]
    assert len(set(same)) == 1
    X[3, 2] += 1
    assert checksum(X, y) != same[0]


@pytest.mark.shared_data
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_real_files_are_those_of_the_experiments(real_data, name):
    found = real_data(name)
    X = (
        found["X"]
        if "X" in found
        else sp.csr_matrix((found["data"], found["indices"], found["indptr"]), found["shape"])
    )
    assert checksum(X, found["y"]) == RECIPES[name].checksum


@pytest.mark.shared_data
def test_builders_make_the_real_data_sets_from_raw_files(real_data, tmp_path):
    coil = real_data("coil20")
    savemat(tmp_path / "COIL20.mat", {"X": coil["X"].astype(float), "Y": coil["y"][:, None]})
    built = from_mat("coil20", tmp_path / "COIL20.mat")
    assert checksum(built["X"], built["y"]) == RECIPES["coil20"].checksum
    golub = real_data("leukemia")
    for name, patients in (("train.csv", range(1, 39)), ("test.csv", range(39, 73))):
        with (tmp_path / name).open("w", newline="") as lines:
            table = csv.writer(lines)
            calls = (word for p in patients for word in (p, "call"))
            table.writerow(["Gene Description", "Gene Accession Number", *calls])
            for gene, values in zip(golub["feature_names"], golub["X"][[p - 1 for p in patients]].T, strict=True):
                table.writerow(["a gene", gene, *(word for value in values for word in (value, "A"))])
    names = np.where(golub["y"] == 1, "AML", "ALL")
    (tmp_path / "actual.csv").write_text("patient,cancer\n" + "".join(f"{k},{n}\n" for k, n in enumerate(names, 1)))
    built = from_golub("leukemia", *(tmp_path / name for name in ("train.csv", "test.csv", "actual.csv")))
    assert checksum(built["X"], built["y"]) == RECIPES["leukemia"].checksum
    for key in ("y", "train_index", "test_index", "feature_names", "class_names"):
        assert built[key].tolist() == golub[key].tolist()


@pytest.mark.shared_data
def test_lymphoma_is_built_from_its_matrix(real_data, tmp_path):
    known = real_data("lymphoma")
    table = np.rint(known["X"].astype(np.float64) * 100)
    table[known["missing_row"], known["missing_col"]] = 999
    np.savetxt(tmp_path / "lymphoma.matrix", table.T, fmt="%4d")
    savemat(tmp_path / "lymphoma.mat", {"X": np.zeros((96, 2)), "Y": known["y_multi"][:, None]})
    built = from_alizadeh("lymphoma", tmp_path / "lymphoma.matrix", tmp_path / "lymphoma.mat")
    np.testing.assert_array_equal(built["X"], known["X"])
    np.testing.assert_array_equal(built["y"], np.isin(known["y_multi"], CANCEROUS))
    for key in ("y_multi", "class_names"):
        assert built[key].tolist() == known[key].tolist()
    assert checksum(built["X"], built["y"]) == RECIPES["lymphoma"].checksum


@pytest.mark.shared_data
@pytest.mark.slow
def test_the_numbers_of_gisette_are_recovered(real_data, tmp_path):
    """LIBSVM's copy is scaled by a number that is not stored, has six digits, and lacks zeros and constant features."""
    known = real_data("gisette_valid")
    largest = np.where(known["X"].max(axis=0) > 991, 999, 991)
    ambiguous = known["scale_uncertain_features"]
    largest[ambiguous] = 999  # for which several numbers are possible, and the largest is taken
    scaled = 2 * known["X"] / largest - 1
    scaled[:, known["lost_features"]] = 0
    with bz2.open(tmp_path / "gisette_scale.t.bz2", "wt", compresslevel=1) as lines:
        for label, row in zip(known["y"], scaled, strict=True):
            pairs = (f"{place}:{value:g}" for place, value in enumerate(row.tolist(), start=1) if value)
            lines.write(f"{label:+d} {' '.join(pairs)}\n")
    built = from_libsvm("gisette_valid", tmp_path / "gisette_scale.t.bz2")
    np.testing.assert_array_equal(built["X"], known["X"])
    assert checksum(built["X"], built["y"]) == RECIPES["gisette_valid"].checksum


class Suffix:
    """Instead of Porter's stemmer, which is not installed: removes the suffix of the made words."""

    def __init__(self, mode):
        assert mode == "ORIGINAL_ALGORITHM"

    def stem(self, word):
        return word.removesuffix("zz")


@pytest.fixture
def stemmer(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "nltk.stem", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", SimpleNamespace(PorterStemmer=Suffix))


def archive(path, *documents):
    """An archive with two files of documents: (topics, title, body, attributes)."""
    head = '<REUTERS TOPICS="YES" LEWISSPLIT="{}" NEWID="{}">\n<TOPICS>{}</TOPICS>\n<TEXT>&#2;\n'
    texts = ["<!DOCTYPE lewis>\n", "<!DOCTYPE lewis>\n"]
    for number, (split, topics, title, body) in enumerate(documents):
        text = head.format(split, number, "".join(f"<D>{topic}</D>" for topic in topics))
        text += (
            f"<TITLE>{title}</TITLE>\n<DATELINE> ROME, Feb 26 - </DATELINE><BODY>{body}\n Reuter\n&#3;</BODY></TEXT>\n"
        )
        texts[2 * number // len(documents)] += text + "</REUTERS>\n"
    with tarfile.open(path, "w:gz") as files:
        for number, text in enumerate(texts):
            content = text.encode("latin-1")
            about = tarfile.TarInfo(f"reut2-00{number}.sgm")
            about.size = len(content)
            files.addfile(about, io.BytesIO(content))
    return path


@pytest.mark.shared_data
@pytest.mark.slow
def test_reuters_is_built_from_documents(real_data, stemmer, tmp_path):
    """Documents made of the known counts, and others, each with a fault for which it must be left out."""
    known = real_data("reuters")
    X = sp.csr_matrix((known["data"], known["indices"], known["indptr"]), known["shape"])
    stems, train = known["feature_names"], set(known["train_index"].tolist())
    documents = []
    for row in range(X.shape[0]):
        words = np.repeat(stems[X[row].indices], X[row].data).tolist()
        title, body = words[:3], words[3:]
        text = "".join(f"{word}zz, " for word in body) + "1,234 the of a 2nd"
        split = "TRAIN" if row in train else "TEST"
        documents.append((split, [known["class_names"][known["y"][row]]], " ".join(f"{w}ZZ" for w in title), text))
    every = " ".join(f"{stem}zz" for stem in stems)
    documents += [("TRAIN", ["earn", "acq"], "two topics", f"{every} {every} {every} other other other")]
    documents += [("NOT-USED", ["earn"], "not used", every), ("TRAIN", [], "no topic", every)]
    documents += [("TRAIN", ["small"], "rare", "rare rare")] * 17
    built = from_reuters("reuters", archive(tmp_path / "reuters21578.tar.gz", *documents))
    assert (built["X"] != X).nnz == 0
    assert checksum(built["X"], built["y"]) == RECIPES["reuters"].checksum
    for key in ("y", "class_names", "feature_names", "train_index", "test_index"):
        np.testing.assert_array_equal(built[key], known[key])


def test_reuters_needs_a_stemmer(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    with pytest.raises(DataError, match="install it: pip install nltk"):
        from_reuters("reuters", tmp_path / "reuters21578.tar.gz")


def test_a_set_is_built_verified_and_saved(tmp_path):
    assert one_set("iris", tmp_path) == "built from https://scikit-learn.org"
    assert one_set("iris", tmp_path) == "iris.npz is complete (150 x 4)"
    np.testing.assert_allclose(load("iris", tmp_path).X, load_iris().data)


def test_faults_are_one_sentence_with_the_address(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    X[0, 0] += 1
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    with pytest.raises(DataError, match=r"iris.npz is not the data set of the experiments: its checksum is .*https://"):
        one_set("iris", tmp_path)

    def offline(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr(data, "urlopen", offline)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataError, match=r"COIL20.mat cannot be fetched \(no network\); download it and save it as"):
        one_set("coil20", tmp_path)
    with pytest.raises(DataError, match=r"openml.org/d/307 cannot be fetched \(no network\)"):
        one_set("vowel", tmp_path)
    with pytest.raises(DataError, match=r"https://www\.daviddlewis.*tar.gz cannot be fetched .*; download it and save"):
        one_set("reuters", tmp_path)
    with pytest.raises(DataError, match=r"Cluster_GeneExpression/master/lymphoma.matrix cannot be fetched"):
        one_set("lymphoma", tmp_path)
    lines = []
    with pytest.raises(DataError, match="2 of 2 data sets are missing: reuters, madelon"):
        lines.extend(prepare("daf-2013", tmp_path))


@pytest.mark.parametrize("name", sorted(name for name in RECIPES if RECIPES[name].files))
@pytest.mark.parametrize("content", [b"", b"<html>404: not found</html>", bytes(range(256))])
def test_a_damaged_raw_file_is_one_sentence_with_the_address(name, content, stemmer, tmp_path):
    (tmp_path / "raw").mkdir()
    for file in RECIPES[name].files:
        (tmp_path / "raw" / file.rpartition("/")[2]).write_bytes(content)
    with pytest.raises(DataError) as error:
        one_set(name, tmp_path)
    assert RECIPES[name].address in str(error.value)
    assert "\n" not in str(error.value)
    (tmp_path / f"{name}.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"npz cannot be read .*; delete it and repeat; the source is https://"):
        one_set(name, tmp_path)


def test_raw_files_are_fetched_once(tmp_path, monkeypatch):
    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def read(self):
            return b"raw"

    asked = []
    monkeypatch.setattr(data, "urlopen", lambda address, timeout: asked.append(address) or Answer())
    for _ in range(2):
        path = data.fetched(RECIPES["coil20"], "skfeature/data/COIL20.mat", tmp_path / "raw")
    assert path.read_bytes() == b"raw"
    assert asked == ["https://raw.githubusercontent.com/jundongl/scikit-feature/master/skfeature/data/COIL20.mat"]


def test_sparse_tables_are_saved_sparse(tmp_path):
    X = sp.csr_matrix(np.eye(4))
    save(tmp_path / "text.npz", {"X": X, "y": np.arange(4), "feature_names": np.array(list("abcd"))})
    found = load("text", tmp_path)
    assert sp.issparse(found.X)
    np.testing.assert_array_equal(found.X.toarray(), np.eye(4))
    assert found.more["feature_names"].tolist() == list("abcd")


VIEWS = {"fourier": 76, "factors": 216, "karhunen": 64, "pixel": 240, "zernike": 47, "morphological": 6}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", sorted(name for name in RECIPES if RECIPES[name].build is data.from_openml))
def test_sets_of_openml_are_built_saved_and_read_again(name, real_data, tmp_path, monkeypatch):
    """As scikit-learn returns them: labels are objects, and a text column is a category."""
    found = real_data(name)
    start = {view: sum(list(VIEWS.values())[:k]) for k, view in enumerate(VIEWS)}

    def fetch_openml(*, as_frame, name="", **which):
        view = name.removeprefix("mfeat-")
        X = found["X"][:, start[view] : start[view] + VIEWS[view]] if view in VIEWS else found["X"]
        table = np.column_stack([np.full(len(X), "text", dtype=object), X.astype(object)])
        names = [f"f{column}" for column in range(table.shape[1])]
        target = found["y"].astype(str).astype(object)
        return SimpleNamespace(data=table, feature_names=names, categories={"f0": ["text"]}, target=target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    assert one_set(name, tmp_path).startswith("built from https://www.openml.org/")
    assert "is complete" in one_set(name, tmp_path)
    built = load(name, tmp_path)
    np.testing.assert_array_equal(built.X.astype(np.float32), found["X"].astype(np.float32))
    if name == "madelon":
        assert built.train_index.tolist() == found["train_index"].tolist()
        found = {"X": found["X"][::-1], "y": found["y"][::-1]}
        with pytest.raises(DataError, match="are not the training rows of the competition"):
            data.from_openml(name)


def test_openml_gives_numeric_columns(monkeypatch):
    asked = []

    def fetch_openml(*, as_frame, **which):
        asked.append(which)
        table = np.array([[1, "a"], [2, "b"]], dtype=object)
        names, categories = ["x", "color"], {"color": ["a", "b"]}
        return type(
            "Bunch", (), {"data": table, "feature_names": names, "categories": categories, "target": ["0", "1"]}
        )

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    assert data.from_openml("vowel")["X"].tolist() == [[1.0], [2.0]]
    assert data.from_openml("mfeat")["X"].shape == (2, 6)
    assert asked[:2] == [{"data_id": 307}, {"name": "mfeat-fourier", "version": 1}]
