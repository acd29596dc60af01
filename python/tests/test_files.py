# SPDX-License-Identifier: MIT
"""Files, the gallery and the list of devices."""
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from conftest import DTYPES, same, whole

import tulle


@pytest.mark.parametrize("name", ("A.mtx", "A.mtx.gz", "A.tulle"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(tmp_path, name, dtype):
    A = whole((20, 30), dtype=dtype)
    tulle.write(tmp_path / name, A)
    B = tulle.read(str(tmp_path / name))
    same(B, A.toarray())
    assert B.format == "csr" and B.dtype in (np.dtype(dtype), np.result_type(dtype, "float64"))


def test_scipy_reads_what_tulle_writes(tmp_path):
    A = whole((20, 30))
    tulle.write(tmp_path / "A.mtx", A.tocsc())
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "A.mtx").toarray(), A.toarray())
    scipy.io.mmwrite(tmp_path / "B.mtx", A.tocoo())
    same(tulle.read(tmp_path / "B.mtx"), A.toarray())


def test_archive(tmp_path):
    tulle.write(tmp_path / "A.mtx", whole((5, 5)))
    with tarfile.open(tmp_path / "A.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "A.mtx", "A/A.mtx")
        data = b"other"
        info = tarfile.TarInfo("A/notes.txt")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    same(tulle.read(tmp_path / "A.tar.gz"), whole((5, 5)).toarray())


def test_mapped_is_read_only(tmp_path):
    A = whole((5, 5))
    tulle.write(tmp_path / "A.tulle", A)
    B = tulle.read(tmp_path / "A.tulle", mapped=True)
    same(B, A.toarray())
    assert not B.data.flags.writeable
    same(tulle.matmul(B, B), A.toarray() @ A.toarray())


def test_integers_and_unsorted_rows(tmp_path):
    A = whole((9, 9)).astype("int64")
    tulle.write(tmp_path / "A.mtx", A)
    same(tulle.read(tmp_path / "A.mtx"), A.toarray())
    A.data[0] = 2**53 + 1
    with pytest.raises(tulle.DtypeError, match="no double can hold"):
        tulle.write(tmp_path / "B.mtx", A)
    assert not (tmp_path / "B.mtx").exists()
    A = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 2))
    tulle.write(tmp_path / "C.mtx", A)
    same(tulle.read(tmp_path / "C.mtx"), A.toarray())
    twice = np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3, 3])
    for form in (sp.csr_array, sp.csc_array):
        A = form(twice, shape=(2, 2))
        tulle.write(tmp_path / "D.tulle", A)
        same(tulle.read(tmp_path / "D.tulle"), A.toarray())


def test_a_damaged_matrix_is_refused(tmp_path):
    for fmt in ("csr", "csc"):
        A = whole((20, 30), fmt=fmt)
        A.indices[3] = 999                          # SciPy's own conversions would write there
        with pytest.raises(tulle.PatternError, match="999"):
            tulle.write(tmp_path / "A.mtx", A)
    assert not list(tmp_path.iterdir())


def test_refused_with_a_sentence(tmp_path):
    with pytest.raises(tulle.FileError, match="no-such.mtx") as error:
        tulle.read(tmp_path / "no-such.mtx")
    assert isinstance(error.value, OSError)
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n9 9 1\n")
    with pytest.raises((tulle.FormatError, tulle.PatternError), match="bad.mtx"):
        tulle.read(tmp_path / "bad.mtx")
    with pytest.raises(tulle.TulleError):
        tulle.write(tmp_path / "A.xyz", whole((3, 3)))
    with pytest.raises(tulle.DtypeError):
        tulle.write(tmp_path / "A.mtx", np.eye(3))
    assert {p.name for p in Path(tmp_path).iterdir()} == {"bad.mtx"}


def test_gallery():
    A = tulle.gallery("poisson2d:nx=4,ny=3")
    grid = sp.kronsum(*(sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1]) for n in (4, 3)))
    same(A, grid.toarray())
    assert "cage" in tulle.recipes() and len(tulle.recipes()) > 20
    with pytest.raises(tulle.InvalidError, match="poisson9d"):
        tulle.gallery("poisson9d")


def test_devices():
    cpu = tulle.devices()[0]
    assert cpu.name == "cpu" and cpu.usable and cpu.threads >= 1 and cpu.memory_bytes > 1 << 28
    assert "auto" in tulle.policies()
