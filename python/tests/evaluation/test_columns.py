import ml_dtypes
import numpy as np
import pytest

from neuropod.evaluation.columns import ColumnFolder, columns_from_json, columns_to_json


def written(folder, *chunks):
    columns = ColumnFolder(folder)
    for chunk in chunks:
        columns.append({"c": chunk})
    (column,) = columns_from_json(columns_to_json(columns.close())).values()
    return column


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "int8", "uint64", "bool", "float16", "complex64", ml_dtypes.bfloat16],
)
def test_numbers_come_back_row_by_row_and_in_blocks(tmp_path, dtype):
    values = np.arange(30).reshape(5, 2, 3).astype(dtype)
    column = written(tmp_path, values[:2], values[2:])
    assert column.count == 5 and column.shape == (2, 3)
    assert column.read(1, 4).dtype == values.dtype
    assert np.array_equal(column.read(1, 4), values[1:4])
    assert np.array_equal(column.row(4), values[4])
    assert np.array_equal(column.values(), values)


def test_rows_of_different_shape_come_back(tmp_path):
    rows = [np.ones((2, 4)), np.zeros((0, 4)), np.full((1, 4), 7.0), np.full((1, 4), 8.0)]
    column = written(tmp_path, rows[:3], rows[3:])
    assert column.shape is None
    assert [column.shape_of(i) for i in range(4)] == [(2, 4), (0, 4), (1, 4), (1, 4)]
    assert all(np.array_equal(a, b) for a, b in zip(column.rows(), rows, strict=True))
    assert np.array_equal(column.read(2, 4)[:, 0, 0], [7, 8])


def test_texts_come_back_whole(tmp_path):
    texts = np.asarray(["", "cat", "日本語", "end\0"], dtype=object)
    column = written(tmp_path, texts[:1], texts[1:], np.asarray([b"bytes"], dtype=object))
    assert column.is_text
    assert column.read(0, 5).tolist() == [*texts, "bytes"]
    assert column.read(2, 4).tolist() == ["日本語", "end\0"]
    assert column.row(4).item() == "bytes"


def test_texts_in_rows_of_different_length_come_back(tmp_path):
    rows = [np.asarray(["a", "bc"]), np.asarray([], "U1"), np.asarray(["d"])]
    column = written(tmp_path, rows)
    assert [row.tolist() for row in column.rows()] == [["a", "bc"], [], ["d"]]


def test_a_leading_one_that_some_rows_lack_is_put_back(tmp_path):
    # As outputs of calls of one row, of which one has one box: (4,) instead of (1, 4).
    column = written(tmp_path, [np.ones((3, 4))], np.ones((1, 4)))
    assert [row.shape for row in column.rows()] == [(3, 4), (1, 4)]


def test_nothing_is_a_column_of_no_rows(tmp_path):
    assert written(tmp_path, np.empty((0, 3))).count == 0


def test_bytes_that_are_no_utf_8_come_back_as_their_surrogates(tmp_path):
    column = written(tmp_path, np.asarray([b"\xff", "a"], dtype=object))
    assert column.read(0, 2).tolist() == ["\udcff", "a"]
