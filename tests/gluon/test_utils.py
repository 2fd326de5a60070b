"""Utility functions of Gluon."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.gluon import utils


def _parts(*arguments: Any, **keywords: Any) -> list[Any]:
    return [part.asnumpy().tolist() for part in utils.split_data(*arguments, **keywords)]


def test_a_batch_is_split_into_parts() -> None:
    x = mx.nd.arange(10).reshape((5, 2))
    assert _parts(x, 5) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]], [[8, 9]]]
    assert [len(part) for part in _parts(x, 3, even_split=False)] == [2, 2, 1]
    assert _parts(x, 2, batch_axis=1)[1] == [[1], [3], [5], [7], [9]]
    assert len(_parts(x, 7, even_split=False)) == 7
    with pytest.raises(ValueError, match="5 samples along axis 0"):
        utils.split_data(x, 2)


def test_parts_are_loaded_to_contexts() -> None:
    parts = utils.split_and_load(np.arange(6.0).reshape(3, 2), [mx.cpu(0), mx.cpu(1)], even_split=False)
    assert [part.context for part in parts] == [mx.cpu(0), mx.cpu(1)]
    assert parts[1].asnumpy().tolist() == [[4, 5]] and parts[1].dtype == np.float32
    (whole,) = utils.split_and_load(mx.nd.ones((3, 2)), [mx.cpu(2)])
    assert whole.context == mx.cpu(2) and whole.shape == (3, 2)


def test_gradients_flow_through_parts() -> None:
    x = mx.nd.ones((4, 2))
    x.attach_grad()
    with mx.autograd.record():
        first, second = utils.split_data(x, 2)
        (first * 2 + second * 3).backward()
    assert x.grad.asnumpy().tolist() == [[2, 2], [2, 2], [3, 3], [3, 3]]


@pytest.mark.parametrize("check", [True, False])
def test_clip_global_norm_scales_gradients(check: bool) -> None:
    arrays = [mx.nd.full((3, 3), 2), mx.nd.full((4,), 4)]
    norm = utils.clip_global_norm(arrays, 5.0, check_isfinite=check)
    assert float(norm) == 10
    assert isinstance(norm, mx.nd.NDArray) is not check
    np.testing.assert_allclose(arrays[0].asnumpy(), 1, rtol=1e-6)
    np.testing.assert_allclose(arrays[1].asnumpy(), 2, rtol=1e-6)
    utils.clip_global_norm(arrays, 100.0)
    np.testing.assert_allclose(arrays[1].asnumpy(), 2, rtol=1e-6)


def test_clip_global_norm_scales_sparse_gradients() -> None:
    rows, matrix = mx.nd.zeros((4, 2)), mx.nd.array([[0, 2], [4, 0]])
    rows[1] = 4
    arrays = [rows.tostype("row_sparse"), matrix.tostype("csr"), mx.nd.full((4,), 6)]
    norms = [utils.clip_global_norm(arrays, bound) for bound in (7.0, 70.0)]
    np.testing.assert_allclose(norms, [14, 7], rtol=1e-6)
    assert [each.stype for each in arrays] == ["row_sparse", "csr", "default"]
    for each, expected in zip(arrays, [rows / 2, matrix / 2, mx.nd.full((4,), 3)]):
        np.testing.assert_allclose(each.asnumpy(), expected.asnumpy(), rtol=1e-6)
    assert arrays[0].indices.asnumpy().tolist() == [1]


def test_clip_global_norm_warns_of_nan() -> None:
    arrays = [mx.nd.array([np.nan, 1])]
    with pytest.warns(UserWarning, match="undefined"):
        utils.clip_global_norm(arrays, 1.0)
    with pytest.raises(mx.errors.ArgumentError, match="one array"):
        utils.clip_global_norm([], 1.0)


def test_download_finds_existing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("MXNET_HOME", str(home))
    monkeypatch.chdir(here)
    address = "https://example.org/data/net.params"
    with pytest.raises(mx.errors.OpError, match=r"https://example.org.* is not downloaded.*'net.params' into"):
        utils.download(address)
    (home / "net.params").write_bytes(b"123")
    right = hashlib.sha1(b"123").hexdigest()
    with pytest.raises(mx.errors.OpError, match="is not downloaded"):
        utils.download(address, sha1_hash="0" * 40)
    assert utils.download(address, path="models/net.params", sha1_hash=right) == "models/net.params"
    assert Path("models/net.params").read_bytes() == b"123"
    assert utils.download(address, "models") == "models/net.params"
    Path("models/net.params").write_bytes(b"other")
    assert utils.download(address, "models") == "models/net.params"
    assert utils.download(address, "models", sha1_hash=right) == "models/net.params"
    assert Path("models/net.params").read_bytes() == b"123"
    assert utils.download((home / "net.params").as_uri(), "copy") == "copy"
    assert utils.check_sha1("copy", right) and not utils.check_sha1("copy", "0" * 40)
    with pytest.raises(mx.errors.ArgumentError, match="does not name a file"):
        utils.download("https://example.org/")


def test_replace_file_replaces_or_cleans_up(tmp_path: Path) -> None:
    """The file takes the place of the other; one that cannot be moved is removed."""
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("new")
    old.write_text("old")
    utils.replace_file(new, old)
    assert (old.read_text(), new.exists()) == ("new", False)
    with pytest.raises(OSError, match="folder"):
        utils.replace_file(old, tmp_path / "no folder" / "old")
    assert not old.exists()
