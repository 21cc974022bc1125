"""The index on an S3 store: found by contents, whole or not at all, said when it fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spanwise import index
from spanwise.errors import InputError, Unavailable

from .servers import HOST, SECRETS, USER, Line, Server, bucket

ROWS, DIMENSION = 3000, 64


def table(seed: int = 0) -> pa.Table:
    """Two labels of rows with random unit vectors, as the stage makes them."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    entries = [
        {"label": f"label-{row % 2}", "chunk_id": f"c{row}", "doc_id": f"d{row // 10:03}",
         "start": row % 10 * 5, "end": row % 10 * 5 + 5, "node": row % 10,
         "path": ["Title", f"Section {row}"], "conditions": ["A2"]}
        for row in range(ROWS)
    ]
    return index.rows(pa.Table.from_pylist(entries), matrix)


def use(patch: pytest.MonkeyPatch, port: int, base: str = "s3://bucket/held") -> None:
    for name, value in {
        index.STORE: base, "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRETS["s3"],
    }.items():
        patch.setenv(name, value)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with bucket(tmp_path / "server") as server:
        use(monkeypatch, server.port)
        yield server


def candidates(folder: Path) -> list[list[str]]:
    """The ids that a search proposes to each of three queries, sorted."""
    on = index.shelf(folder, "label-1")
    queries = np.random.default_rng(5).normal(size=(3, DIMENSION)).astype(np.float32)
    found = index.propose_lancedb(folder, on)(queries, 20)
    return [sorted(on.chunk_ids[row] for row in listed) for listed in found]


@pytest.mark.system
@pytest.mark.usefixtures("store")
def test_a_table_on_the_store_is_that_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = index.build(tmp_path / "there" / "toy" / "m", table())
    there = index.shelf(tmp_path / "there" / "toy" / "m", "label-1")
    proposed = candidates(tmp_path / "there" / "toy" / "m")
    monkeypatch.delenv(index.STORE)
    assert index.build(tmp_path / "here", table()) == made
    here = index.shelf(tmp_path / "here", "label-1")
    assert candidates(tmp_path / "here") == proposed
    assert (there.chunk_ids, there.doc_ids) == (here.chunk_ids, here.doc_ids)
    assert np.array_equal(there.matrix, here.matrix) and len(here.chunk_ids) == ROWS / 2
    # What DVC keeps names neither the store nor a key.
    (kept,) = (tmp_path / "there" / "toy" / "m").iterdir()
    assert kept.read_text() == f'{{"digest": "{made["digest"]}"}}\n'
    with pytest.raises(InputError, match=r"set SPANWISE_INDEX_URI, or write it here with `dvc repro"
                                         r" --force --single-item index@toy-m`"):
        index.shelf(tmp_path / "there" / "toy" / "m", "label-1")


@pytest.mark.system
def test_tables_of_one_store_never_replace_each_other_and_a_damaged_one_is_written_anew(
    store: Server, tmp_path: Path
) -> None:
    first, second = (index.build(tmp_path / name, table(seed))["digest"]
                     for seed, name in enumerate("ab"))
    held = store.kept / "held"
    assert sorted(path.name for path in held.iterdir()) == sorted([first, second])
    before = sorted((held / first).rglob("*"))
    index.build(tmp_path / "a", table(0))
    assert sorted((held / first).rglob("*")) == before  # there already: nothing is sent again

    (data,) = (held / first).rglob("data/*.lance")
    content = bytearray(data.read_bytes())
    middle = content.find(table(0)["vector"].combine_chunks().flatten().to_numpy()[4000:4004]
                          .tobytes())
    assert middle > 0
    content[middle] ^= 0x10
    data.write_bytes(content)
    assert not index._same(f"s3://bucket/held/{first}", table(0), first)
    index.build(tmp_path / "a", table(0))
    assert sorted((held / first).rglob("*")) != before
    assert index._same(f"s3://bucket/held/{first}", table(0), first)


@pytest.mark.system
def test_a_line_that_breaks_leaves_no_table_and_a_second_try_completes(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Line(store.port)
    use(monkeypatch, way.port)
    folder = tmp_path / "toy" / "m"
    try:
        way.mend(200_000)  # of some 900 kB
        with pytest.raises(Unavailable, match="the store of the index failed") as error:
            index.build(folder, table())
        assert way.cuts and not folder.exists()
        assert SECRETS["s3"] not in str(error.value)
        assert not list(store.kept.rglob("_versions/*"))
        way.mend()
        index.build(folder, table())
        whole = candidates(folder)
        way.mend(2_000)
        with pytest.raises(Unavailable, match="the store of the index failed"):
            index.shelf(folder, "label-1")
        way.mend()
        assert candidates(folder) == whole
    finally:
        way.close()


@pytest.mark.system
def test_a_table_that_is_gone_is_said_with_the_mend(store: Server, tmp_path: Path) -> None:
    folder = tmp_path / "toy" / "m"
    index.build(folder, table())
    shutil.rmtree(store.kept / "held")
    with pytest.raises(InputError, match=r"no index there; write it with `dvc repro --force"):
        index.shelf(folder, "label-1")


@pytest.mark.parametrize("base", [
    "s3://user:planted-in-address@bucket/x", "/a/folder", "s3://", "https://bucket/x",
    "s3://bucket/x?secret=planted-in-address", "s3://bucket:99/x", "s3://[", "bucket",
])
def test_a_wrong_address_is_refused_and_not_repeated(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, 9, base)
    with pytest.raises(InputError, match="expected s3://BUCKET/FOLDER") as error:
        index.build(tmp_path / "m", table())
    assert "planted" not in str(error.value) and not (tmp_path / "m").exists()
