import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from neuropod import ProblemAPI
from neuropod.evaluation import DataError, Progress
from neuropod.evaluation.datasets import DataSettings, ImageSettings, open_dataset
from neuropod.evaluation.prepared import prepare

X = {"name": "x", "dtype": "float32", "shape": ["batch"]}
IMAGE = {"name": "image", "dtype": "uint8", "shape": ["batch", 4, 6, 3]}


@pytest.fixture
def read(tmp_path):
    """Reads data for inputs; returns what `prepare` does, with the inputs in memory."""

    def read(data, inputs, targets=(), *, limit=None, settings=None):
        folder = tmp_path / f"prepared{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        api = ProblemAPI(inputs, [{"name": "y", "dtype": "float32", "shape": ("batch",)}])
        dataset = open_dataset(data, inputs, settings)
        prepared = prepare(dataset, api, targets, folder, limit, Progress())
        inputs = {name: column.values() for name, column in prepared.inputs.items()}
        return inputs, prepared.targets, prepared

    return read


@pytest.fixture
def csv(tmp_path):
    def write(text, name="data.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def picture(path, size=(6, 4), mode="RGB", value=7):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value,) * len(mode)).save(path)


# Arrays


def test_npz_floats_are_rounded_to_the_inputs_dtype(read, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.asarray([0.1, 0.2]), label=np.asarray([1, 2]))
    inputs, targets, prepared = read(tmp_path / "d.npz", [X], ["label"])
    assert inputs["x"].dtype == np.float32
    assert targets["label"].tolist() == [1, 2]
    assert prepared.where(1) == f"{tmp_path}/d.npz row 1"


def test_arrays_of_a_program_are_data_too(read):
    assert read({"x": [1, 2, 3]}, [X])[0]["x"].tolist() == [1, 2, 3]


def test_the_limit_cuts(read):
    inputs, targets, prepared = read({"x": range(3000), "t": range(3000)}, [X], ["t"], limit=1500)
    assert prepared.count == len(inputs["x"]) == len(targets["t"]) == 1500


def test_optional_inputs_may_be_left_out(read):
    extra = {"name": "extra", "dtype": "float32", "shape": ["batch"], "optional": True}
    assert list(read({"x": [1.0]}, [X, extra])[0]) == ["x"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [1.0]}, r"data has no column for input 'x'; known: 'y'"),
        ({"X": [1.0]}, r"no column for input 'x'; "),
        ({"x": []}, r"data holds no rows"),
        ({"x": 1.0}, r"array 'x' is a single value"),
        ({"x": [1.0], "t": [1, 2]}, r"different numbers of rows: 'x' has 1, 't' has 2"),
        (
            {"x": [[1.0, 2.0]]},
            r"data row 0: input 'x' has shape \(2,\), expected \(\).*takes \(batch,\)",
        ),
        ({"x": ["a"]}, r"data row 0: input 'x' is float32, found text 'a'"),
        ({"x": [1.0, 1e300]}, r"data row 1: input 'x' is float32, which can't hold 1e\+300"),
    ],
)
def test_arrays_that_do_not_fit_are_named(read, arrays, message):
    with pytest.raises(DataError, match=message):
        read(arrays, [X])


def test_whole_numbers_stay_what_they_are(read):
    spec = {**X, "dtype": "int8"}
    assert read({"x": [1.0, -3.0]}, [spec])[0]["x"].tolist() == [1, -3]
    with pytest.raises(DataError, match=r"row 1: input 'x' is int8, which can't hold 300"):
        read({"x": [1, 300]}, [spec])
    with pytest.raises(DataError, match=r"row 0: input 'x' is int8, which can't hold 0\.5"):
        read({"x": [0.5]}, [spec])


def test_files_that_are_no_data_are_refused(read, tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK no")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    (tmp_path / "d.txt").write_text("x")
    with pytest.raises(DataError, match=r"bad.npz can't be read"):
        read(tmp_path / "bad.npz", [X])
    with pytest.raises(DataError, match=r"bad.parquet can't be read as Parquet"):
        read(tmp_path / "bad.parquet", [X])
    with pytest.raises(DataError, match=r"d.txt: unknown kind of data; expected .npz"):
        read(tmp_path / "d.txt", [X])
    with pytest.raises(DataError, match=r"none.npz does not exist"):
        read(tmp_path / "none.npz", [X])


# CSV


def test_csv_columns_are_inputs_by_name_and_targets_by_what_they_hold(read, csv):
    path = csv('x,label,price,name\n1.5,3,2.5,cat\n\n-2,4,3,"a, b"\n')
    inputs, targets, prepared = read(path, [X], ["label", "price", "name"])
    assert inputs["x"].tolist() == [1.5, -2]
    assert targets["label"].dtype == np.int64
    assert targets["price"].tolist() == [2.5, 3]
    assert targets["name"].tolist() == ["cat", "a, b"]
    assert prepared.where(1) == f"{path} line 4"  # line 3 is blank


@pytest.mark.parametrize(
    "header", ["x[0],x[1],x[2],x[3]", "x.0,x.1,x.2,x.3", "x[3],x[2],x[1],x[0]"]
)
def test_csv_columns_with_an_index_are_one_tensor(read, csv, header):
    spec = {**X, "shape": ["batch", 4]}
    (row,) = read(csv(f"{header}\n0,1,2,3\n"), [spec])[0]["x"].tolist()
    assert row == ([3, 2, 1, 0] if header.startswith("x[3]") else [0, 1, 2, 3])


def test_csv_columns_with_two_indices_are_a_matrix(read, csv):
    spec = {**X, "shape": ["batch", 2, 2]}
    for header in ("x[0][0],x[0][1],x[1][0],x[1][1]", '"x[0,0]","x[0,1]","x[1,0]","x[1,1]"'):
        assert read(csv(f"{header}\n0,1,2,3\n"), [spec])[0]["x"].tolist() == [[[0, 1], [2, 3]]]


def test_csv_holds_strings_booleans_and_tabs(read, csv):
    specs = [{**X, "dtype": "string"}, {"name": "b", "dtype": "bool", "shape": ["batch"]}]
    inputs = read(csv("x\tb\ncat\ttrue\n7\t0\n", "data.tsv"), specs)[0]
    assert inputs["x"].tolist() == ["cat", "7"]
    assert inputs["b"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n1\nabc\n", r"data.csv line 3, column 'x': expected float32, found 'abc'"),
        ("x,t\n1,2\n,2\n", r"line 3, column 'x': expected float32, found an empty cell"),
        ("x,t\n1\n", r"line 2 has 1 cells, expected 2 as in the header"),
        ("x,x\n1,2\n", r"has the column 'x' twice"),
        ("", r"data.csv is empty; expected a header"),
        ("x\n", r"data.csv holds no rows"),
        ('x\n"1\n', r"data.csv line 2"),
        ("x[0],x[2]\n1,2\n", r"'x' has columns up to 'x\[2\]', but none for index \[1\]"),
        ("x[0],x[1][0]\n1,2\n", r"indices of different length"),
        ("x[0],x[1]\n1,2\n", r"line 2: input 'x' has shape \(2,\), expected \(\)"),
    ],
)
def test_csv_that_does_not_fit_is_named_by_line(read, csv, text, message):
    with pytest.raises(DataError, match=message):
        read(csv(text), [X])


def test_csv_that_is_not_utf_8_is_refused(read, tmp_path):
    (tmp_path / "d.csv").write_bytes(b"x\n1\n\xff\n")
    with pytest.raises(DataError, match=r"d.csv is not UTF-8"):
        read(tmp_path / "d.csv", [{**X, "dtype": "string"}])


def test_csv_whole_numbers_out_of_range_are_named(read, csv):
    with pytest.raises(DataError, match=r"line 3, column 'x': expected uint8, found '256'"):
        read(csv("x\n255\n256\n"), [{**X, "dtype": "uint8"}])


def test_csv_of_many_rows_is_read_in_chunks(read, csv):
    path = csv("x,label\n" + "".join(f"{i},{i % 3}\n" for i in range(3000)))
    inputs, targets, prepared = read(path, [X], ["label"])
    assert inputs["x"].tolist() == list(range(3000))
    assert targets["label"].tolist() == [i % 3 for i in range(3000)]
    assert prepared.where(2999).endswith("line 3001")


# Parquet


def test_parquet_lists_are_tensors_and_may_differ_in_length(read, tmp_path):
    table = {
        "x": [[1.0, 2.0], [3.0]],
        "fixed": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
        "name": ["a", "b"],
        "boxes": pa.array([[[0.0, 0.0, 1.0, 1.0]], []], pa.list_(pa.list_(pa.float64()))),
    }
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    specs = [
        {**X, "shape": ["batch", None]},
        {"name": "fixed", "dtype": "int64", "shape": ["batch", 2]},
    ]
    inputs, targets, _ = read(tmp_path / "d.parquet", specs, ["name", "boxes"])
    assert [row.tolist() for row in inputs["x"]] == [[1, 2], [3]]
    assert inputs["fixed"].tolist() == [[1, 2], [3, 4]]
    assert targets["name"].tolist() == ["a", "b"]
    assert targets["boxes"][0].tolist() == [[0, 0, 1, 1]] and targets["boxes"][1].size == 0


def test_parquet_columns_with_an_index_are_one_tensor(read, tmp_path):
    pq.write_table(pa.table({"x[0]": [1, 2], "x[1]": [3, 4]}), tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet", [{**X, "shape": ["batch", 2]}])[0]["x"].tolist() == [
        [1, 3],
        [2, 4],
    ]


def test_parquet_nulls_are_named(read, tmp_path):
    pq.write_table(pa.table({"x": [1.0, None]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d.parquet row 1, column 'x': a null, expected a value"):
        read(tmp_path / "d.parquet", [X])
    pq.write_table(pa.table({"x": [[1.0], [None]]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d.parquet row 1, column 'x': a list with a null"):
        read(tmp_path / "d.parquet", [{**X, "shape": ["batch", 1]}])


# Images


def test_subfolders_are_classes_in_order_of_their_names(read, tmp_path):
    for name in ("dog", "cat", "dog"):
        picture(tmp_path / "images" / name / f"{len(list(tmp_path.rglob('*.png')))}.png")
    inputs, targets, prepared = read(tmp_path / "images", [IMAGE], ["label"])
    assert inputs["image"].shape == (3, 4, 6, 3)
    assert targets["label"].tolist() == ["cat", "dog", "dog"]
    assert prepared.dataset.classes == ["cat", "dog"]
    assert prepared.where(0) == f"{tmp_path}/images/cat/1.png"


def test_numbered_subfolders_are_the_classes_themselves(read, tmp_path):
    for name in ("10", "2", "0"):
        picture(tmp_path / "images" / name / "a.png")
    assert read(tmp_path / "images", [IMAGE], ["label"])[1]["label"].tolist() == [0, 2, 10]


def test_images_are_brought_to_the_inputs_channels_layout_and_range(read, tmp_path):
    picture(tmp_path / "i" / "a.png", mode="L", value=255)
    spec = {"name": "image", "dtype": "float32", "shape": ["batch", 3, 4, 6]}
    settings = DataSettings(images=ImageSettings(pixel_range=(-1.0, 1.0)))
    image = read(tmp_path / "i", [spec], settings=settings)[0]["image"]
    assert image.shape == (1, 3, 4, 6) and (image == 1).all()
    gray = {"name": "image", "dtype": "uint8", "shape": [4, 6]}
    assert read(tmp_path / "i", [gray])[0]["image"].tolist() == [[[255] * 6] * 4]


@pytest.mark.parametrize(
    ("dtype", "pixels", "bound"),
    [("uint8", (-1, 1), "-1"), ("int8", (0, 255), "255"), ("float32", (0, float("nan")), "nan")],
)
def test_a_pixel_range_that_the_input_cannot_hold_is_refused(read, tmp_path, dtype, pixels, bound):
    """As a whole number without sign, -1 would become 255."""
    picture(tmp_path / "i" / "a.png")
    settings = DataSettings(images=ImageSettings(pixel_range=pixels))
    with pytest.raises(DataError, match=f"'image' is {dtype}, which can't hold {bound}"):
        read(tmp_path / "i", [{**IMAGE, "dtype": dtype}], settings=settings)


def test_images_of_another_size_are_refused_or_scaled(read, tmp_path):
    picture(tmp_path / "i" / "a.png", size=(12, 8))
    with pytest.raises(DataError, match=r"a.png is 12x8, input 'image' takes 6x4.*--resize"):
        read(tmp_path / "i", [IMAGE])
    settings = DataSettings(images=ImageSettings(resize=True))
    assert read(tmp_path / "i", [IMAGE], settings=settings)[0]["image"].shape == (1, 4, 6, 3)


def test_a_label_table_names_files_and_further_columns(read, tmp_path):
    picture(tmp_path / "i" / "a.png")
    picture(tmp_path / "i" / "deep" / "b.png")
    (tmp_path / "i" / "labels.csv").write_text("file,label,age\ndeep/b.png,3,1.5\na.png,4,2\n")
    _, targets, prepared = read(tmp_path / "i", [IMAGE], ["label", "age"])
    assert targets["label"].tolist() == [3, 4] and targets["age"].tolist() == [1.5, 2]
    assert prepared.where(0) == f"{tmp_path}/i/deep/b.png ({tmp_path}/i/labels.csv line 2)"


def test_broken_folders_of_images_are_refused(read, tmp_path):
    folder = tmp_path / "i"
    folder.mkdir()
    with pytest.raises(DataError, match="i holds no rows"):
        read(folder, [IMAGE])
    (folder / "a.png").write_bytes(b"no")
    with pytest.raises(DataError, match=r"a.png can't be read as an image"):
        read(folder, [IMAGE])
    with pytest.raises(
        DataError, match=r"feeds a model with one input, the inputs are 'image', 'x'"
    ):
        read(folder, [IMAGE, X])
    with pytest.raises(DataError, match=r"input 'x' is \(batch,\), which is no image"):
        read(folder, [X])
    (folder / "labels.csv").write_text("name,label\na.png,1\n")
    with pytest.raises(
        DataError, match=r"labels.csv has the columns 'name', 'label', expected 'file'"
    ):
        read(folder, [IMAGE])
    (folder / "labels.csv").write_text("file,label\nb.png,1\n")
    with pytest.raises(DataError, match=r"labels.csv line 2: there is no image .*i/b.png"):
        read(folder, [IMAGE])


@pytest.fixture
def coco(tmp_path):
    """A folder of two images with COCO's annotations, changed by the test."""
    picture(tmp_path / "i" / "a.png")
    picture(tmp_path / "i" / "b.png")
    content = {
        "images": [{"id": 5, "file_name": "a.png"}, {"id": 3, "file_name": "b.png"}],
        "categories": [{"id": 7, "name": "dog"}, {"id": 2, "name": "cat"}],
        "annotations": [{"image_id": 5, "category_id": 7, "bbox": [1, 1, 2, 3], "iscrowd": 0}],
    }

    def write(**changes):
        (tmp_path / "i" / "annotations.json").write_text(json.dumps({**content, **changes}))
        return tmp_path / "i"

    return write


def test_coco_annotations_are_boxes_by_image(read, coco):
    _, targets, prepared = read(coco(), [IMAGE], ["boxes", "classes", "class_names", "crowd"])
    assert targets["boxes"][0].tolist() == [[1, 1, 3, 4]] and targets["boxes"][1].shape == (0, 4)
    assert targets["classes"][0].tolist() == [7]
    assert targets["class_names"][0].tolist() == ["dog"]
    assert targets["crowd"][0].tolist() == [False]
    assert prepared.dataset.classes == ["cat", "dog"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": 1}, r"has no list 'images'"),
        ({"images": [{"id": 1}]}, r"annotation 0 is of image 5, which the file doesn't have"),
        ({"annotations": [{"image_id": 5}]}, r"annotation 0 .* has no 'category_id'"),
        (
            {"annotations": [{"image_id": 5, "category_id": 9, "bbox": [0, 0, 1, 1]}]},
            r"annotation 0 has the unknown category 9; known: 7 \(dog\), 2 \(cat\)",
        ),
        (
            {"annotations": [{"image_id": 5, "category_id": 7, "bbox": [0, 0, 1]}]},
            r"bbox \[0, 0, 1\] is expected to be \[left, top, width, height\]",
        ),
        (
            {"images": [{"id": 5, "file_name": "c.png"}], "annotations": []},
            r"there is no image .*i/c.png",
        ),
    ],
)
def test_broken_coco_annotations_are_refused(read, coco, changes, message):
    with pytest.raises(DataError, match=message):
        read(coco(**changes), [IMAGE])


def test_images_beside_the_classes_are_refused(read, tmp_path):
    picture(tmp_path / "i" / "cat" / "a.png")
    picture(tmp_path / "i" / "stray.png")
    with pytest.raises(DataError, match=r"subfolders are classes, but stray.png lies beside them"):
        read(tmp_path / "i", [IMAGE], ["label"])


def test_images_without_labels_are_rows_too(read, tmp_path):
    picture(tmp_path / "i" / "a.png")
    (tmp_path / "i" / "notes").mkdir()
    assert read(tmp_path / "i", [IMAGE])[2].dataset.names == ["image"]


def test_parquet_of_other_types_is_refused(read, tmp_path):
    times = pa.array([0], pa.timestamp("s"))
    pq.write_table(pa.table({"x": [1.0], "when": times}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"column 'when' holds timestamp.*; expected numbers"):
        read(tmp_path / "d.parquet", [X], ["when"])
