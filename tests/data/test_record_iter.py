"""Iterators over files of records: the images of each batch, and their changes."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import opreg as mx
from opreg.data import record_augment
from opreg.errors import ArgumentError, FileFormatError, ShapeError
from tests.recorded.mxnet_images import FILE, RECORD_ITERS, picture, read_by

pytest.importorskip("PIL")

MXNET = np.load(FILE)


def record(label, number, pixels) -> bytes:
    return mx.recordio.pack_img((0, label, number, 0), pixels, 3, ".png")


def write(path, records) -> str:
    with mx.recordio.MXIndexedRecordIO(f"{path}.idx", str(path), "w") as file:
        for number, each in enumerate(records):
            file.write_idx(number, each)
    return str(path)


@pytest.fixture
def ten(tmp_path) -> str:
    """Ten images of one colour each."""
    return write(tmp_path / "ten.rec", [record(float(i), 100 + i, np.full((8, 8, 3), 3 * i, np.uint8))
                                        for i in range(10)])


def iterator(path, batch_size=4, data_shape=(3, 4, 4), **keywords):
    return mx.io.ImageRecordIter(path_imgrec=path, batch_size=batch_size, data_shape=data_shape, **keywords)


def labels(batches) -> list:
    found = []
    for batch in batches:
        numbers, pad = batch.label[0].asnumpy(), batch.pad
        rows = slice(0, len(numbers) - pad)
        assert np.array_equal(batch.data[0].asnumpy()[rows, 0, 0, 0], 3 * numbers[rows])
        assert batch.index[rows].tolist() == (100 + numbers[rows]).tolist()
        found.append((numbers.tolist(), pad))
    return found


def rounds(batches, count) -> list:
    found = []
    for _ in range(count):
        found.append(labels(batches))
        assert labels(batches) == []
        batches.reset()
    return found


@pytest.mark.parametrize("name", RECORD_ITERS)
def test_batches_equal_those_of_mxnet(name, tmp_path):
    header = mx.recordio.IRHeader(0, 1.0, 0, 0)
    path = write(tmp_path / "one.rec", [mx.recordio.pack(header, MXNET["file .png"].tobytes())])
    given, expected = read_by(mx, name, path), MXNET[f"record {name}"]
    assert given.dtype == expected.dtype and given.shape == expected.shape
    assert np.abs(given.astype(float) - expected).max() <= (1 if name.startswith("gray") else 1e-4)


@pytest.mark.parametrize("method", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("size, new", [
    ((40, 30), (13, 20)), ((40, 30), (20, 15)), ((9, 13), (30, 40)), ((30, 8), (21, 24))])
def test_a_part_of_a_resized_image_is_cut_from_the_whole(size, new, method):
    image = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    whole = record_augment.resize(image, *new, method)
    rows, columns = slice(2, 9), slice(3, 14)
    for part in ((rows, columns), (slice(0, new[0]), slice(new[1] - 5, new[1])), (slice(4, 5), slice(0, 1))):
        assert np.array_equal(record_augment.resize(image, *new, method, part), whole[part])


@pytest.mark.parametrize("color, change, expected", [
    ((240, 100, 0), (0, 0, 0), (240, 96, 0)),
    ((240, 100, 0), (10, 0, 0), (240, 176, 0)),
    ((200, 10, 0), (0, 10, 0), (220, 7, 0)),
    ((240, 100, 0), (-10, 0, 0), (240, 16, 0)),
    ((255, 200, 35), (0, -20, 0), (250, 192, 0)),
    ((240, 100, 0), (0, 0, -30), (226, 99, 14)),
])
def test_hue_lightness_and_saturation_are_rounded_as_by_opencv(color, change, expected):
    changed = record_augment.changed_hls(np.array([[color]], np.uint8), *change)
    assert changed.tolist() == [[list(expected)]]


FIRST = [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9, 0, 1], 2)]


@pytest.mark.parametrize("indexed", [True, False])
def test_an_epoch_begins_after_the_samples_that_filled_the_last_batch(ten, indexed):
    batches = iterator(ten, path_imgidx=f"{ten}.idx" if indexed else "")
    assert batches.provide_data == [("data", (4, 3, 4, 4))] and batches.provide_label == [("softmax_label", (4,))]
    assert rounds(batches, 3) == [FIRST, [([2, 3, 4, 5], 0), ([6, 7, 8, 9], 0)], FIRST]
    batches.next()
    batches.reset()  # in the middle: from the first again
    assert labels(batches) == FIRST


def test_without_round_batch_the_last_batch_is_filled_with_zeros(ten):
    assert rounds(iterator(ten, round_batch=False), 2) == [[*FIRST[:2], ([8, 9, 0, 0], 2)]] * 2


def test_a_batch_larger_than_the_file_repeats_it(ten):
    assert labels(iterator(ten, 24)) == [([*range(10), *range(10), *range(4)], 14)]


@pytest.mark.parametrize("indexed, expected", [
    (False, [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]), (True, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])])
def test_parts_are_those_of_mxnet(ten, indexed, expected):
    for part in range(3):
        batches = iterator(ten, 1, num_parts=3, part_index=part, path_imgidx=f"{ten}.idx" if indexed else "")
        assert [numbers[0] for numbers, _ in labels(batches)] == expected[part]


def test_the_seed_determines_the_order(ten):
    first, again, other = (rounds(iterator(ten, 5, shuffle=True, seed=seed), 3) for seed in (1, 1, 2))
    assert first == again and first != other
    orders = [[number for numbers, _ in each for number in numbers] for each in first]
    assert all(sorted(order) == list(range(10)) for order in orders) and orders[0] != orders[1]
    filled = rounds(iterator(ten, 4, shuffle=True), 2)
    assert sorted(filled[0][2][0][2:] + [number for numbers, _ in filled[1] for number in numbers]) == list(range(10))


AUGMENTED = {"data_shape": (3, 12, 12), "rand_crop": True, "rand_mirror": True, "max_rotate_angle": 20,
             "max_aspect_ratio": 0.2, "min_random_scale": 0.9, "max_random_scale": 1.2, "max_shear_ratio": 0.1,
             "brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "pca_noise": 0.1, "random_h": 10, "random_s": 20,
             "random_l": 20, "max_random_contrast": 0.1, "max_random_illumination": 5, "inter_method": 10}


@pytest.mark.parametrize("keywords", [AUGMENTED, {
    "data_shape": (3, 12, 12), "random_resized_crop": True, "min_random_area": 0.1, "min_aspect_ratio": 0.75,
    "max_aspect_ratio": 1.33}, {"data_shape": (3, 12, 12), "min_crop_size": 8, "max_crop_size": 16, "rand_crop": True}])
def test_random_values_depend_on_the_seed(keywords, tmp_path, monkeypatch):
    path = write(tmp_path / "a.rec", [record(1.0, i, picture()) for i in range(6)])

    def seen(count, **more):
        monkeypatch.setattr("opreg.core.threads.count", lambda: count)
        batches = mx.io.ImageRecordIter(path_imgrec=path, batch_size=3, **keywords, **more)
        found = []
        for _ in range(2):
            found.append(np.concatenate([batch.data[0].asnumpy() for batch in batches]))
            batches.reset()
        return np.stack(found)

    first = seen(1, seed=1)
    assert np.array_equal(first, seen(2, seed=1)) and not np.array_equal(first, seen(1, seed=2))
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[0, 0], first[0, 1])
    fixed = seen(1, seed_aug=5)
    assert np.array_equal(fixed[0], fixed[1]) and np.isfinite(first).all()


def test_colours_change_by_no_more_than_they_may(tmp_path):
    path = write(tmp_path / "a.rec", [record(1.0, i, np.full((4, 4, 3), (40, 80, 160), np.uint8)) for i in range(20)])

    def seen(**keywords):
        (batch,) = iterator(path, 20, **keywords)
        return batch.data[0].asnumpy()[:, :, 0, 0] - [160, 80, 40]

    assert np.abs(seen(random_h=0, brightness=0.1)).max(axis=0).tolist() <= [17, 9, 5]
    for name, most in (("random_l", 20), ("random_s", 20), ("random_h", 20)):
        changed = seen(**{name: most})
        assert 3 < np.abs(changed).max() <= 3 * most, name
    assert np.abs(seen(random_l=1)).max() <= 2  # both conversions change values only by rounding
    gray = seen(saturation=0.5) + [160, 80, 40]
    luma = gray @ [0.299, 0.587, 0.114]
    assert np.abs(luma - luma[0]).max() < 2 and np.ptp(gray[:, 0]) > 10
    assert np.abs(seen(pca_noise=0.1)).max() > 0


def test_the_file_of_a_mean_is_made(ten, tmp_path):
    mean = str(tmp_path / "mean.bin")
    batches = iterator(ten, mean_img=mean, scale=0.5, round_batch=False)
    assert mx.nd.load(mean)["mean_img"].asnumpy() == pytest.approx(np.full((3, 4, 4), 13.5))
    assert batches.next().data[0].asnumpy()[:, 1, 1, 1].tolist() == [(3 * i - 13.5) / 2 for i in range(4)]
    assert iterator(ten, mean_img=mean).next().data[0].asnumpy()[1, 0, 0, 0] == -10.5
    with pytest.raises(FileFormatError, match=r"expected one array of shape \(3, 5, 5\)"):
        iterator(ten, data_shape=(3, 5, 5), mean_img=mean)


def test_labels_may_have_several_values(tmp_path, ten):
    path = write(tmp_path / "a.rec", [record([i, i + 0.5], i, np.zeros((4, 4, 3), np.uint8)) for i in range(3)])
    batches = iterator(path, 3, label_width=2, data_name="x", label_name="y")
    assert batches.provide_label == [("y", (3, 2))] and batches.provide_data[0].name == "x"
    assert batches.next().label[0].asnumpy().tolist() == [[0, 0.5], [1, 1.5], [2, 2.5]]
    (tmp_path / "a.lst").write_text("".join(f"{100 + i}\t{i}\t{10 * i}\tx.jpg\n" for i in range(10)))
    batches = iterator(ten, label_width=2, path_imglist=str(tmp_path / "a.lst"))
    assert batches.next().label[0].asnumpy().tolist() == [[0, 0], [1, 10], [2, 20], [3, 30]]
    with pytest.raises(ShapeError, match="label_width=1, its label has 2 numbers"):
        iterator(path)
    with pytest.raises(FileFormatError, match="no entry for image"):
        iterator(path, label_width=2, path_imglist=str(tmp_path / "a.lst"))


@pytest.mark.parametrize("name, dtype", [("ImageRecordIter_v1", "float32"), ("ImageRecordUInt8Iter", "uint8"),
                                         ("ImageRecordUInt8Iter_v1", "uint8"), ("ImageRecordInt8Iter", "int8")])
def test_iterators_have_mxnets_other_names(name, dtype, ten):
    batches = getattr(mx.io, name)(path_imgrec=ten, batch_size=4, data_shape=(3, 4, 4))
    assert isinstance(batches, mx.io.MXDataIter) and batches.provide_data[0].dtype == np.dtype(dtype)
    assert batches.iter_next() and batches.getdata().dtype == np.dtype(dtype)
    assert batches.getlabel().asnumpy().tolist() == [0, 1, 2, 3] and batches.getpad() == 0
    assert batches.getindex().tolist() == [100, 101, 102, 103]


def test_damaged_records_are_refused_or_skipped(ten, tmp_path):
    data = bytearray((tmp_path / "ten.rec").read_bytes())
    with mx.recordio.MXIndexedRecordIO(f"{ten}.idx", ten, "r") as file:
        places = list(file.idx.values())
    data[places[3]] ^= 1                 # no magic number
    data[places[6] + 8 + 24] ^= 1        # no image
    (tmp_path / "broken.rec").write_bytes(data)
    broken = str(tmp_path / "broken.rec")
    with pytest.raises(FileFormatError, match=f"the record at byte {places[2]} is shorter than the"):
        iterator(broken)
    batches = iterator(broken, damaged="skip", round_batch=False)
    assert labels(batches) == [([0, 1, 4, 5], 0), ([7, 8, 9, 0], 1)] and batches.skipped >= 2
    good = bytes(data[:places[2]] + data[places[4]:])
    (tmp_path / "image.rec").write_bytes(good)
    with pytest.raises(FileFormatError, match="cannot be decoded") as caught:
        labels(iterator(str(tmp_path / "image.rec"), 3))
    assert "the record at byte" in caught.value.__notes__[0]
    batches = iterator(str(tmp_path / "image.rec"), 4, damaged="skip")
    assert labels(batches) == [([0, 1, 4, 5], 0), ([7, 8, 9, 0], 1)]


def test_a_file_without_a_complete_record_is_refused(tmp_path):
    path = write(tmp_path / "a.rec", [b"nonsense"] * 3)
    with pytest.raises(FileFormatError, match="too short"):
        iterator(path)
    with pytest.raises(StopIteration):
        iterator(path, damaged="skip")
    (tmp_path / "empty.rec").write_bytes(b"")
    with pytest.raises(FileFormatError, match="no records"):
        iterator(str(tmp_path / "empty.rec"))


@pytest.mark.parametrize("keywords, error, text", [
    ({"data_shape": (3, 4)}, ShapeError, "data_shape"), ({"data_shape": (2, 4, 4)}, ShapeError, "channels"),
    ({"batch_size": 0}, ArgumentError, "at least 1"),
    ({"inter_method": 7}, ArgumentError, "inter_method=7"), ({"damaged": "skp"}, ArgumentError, "'skip'"),
    ({"random_resized_crop": True, "rand_crop": True}, ArgumentError, "cannot be combined with"),
    ({"min_random_scale": 2}, ArgumentError, "is more than"), ({"max_crop_size": 30}, ShapeError, "max_crop_size=30"),
    ({"part_index": 3, "num_parts": 3}, ArgumentError, "part_index=3"), ({"data_shape": (4, 4, 4)}, FileFormatError,
                                                                         "of 4 channels, got 3")])
def test_wrong_uses_of_image_record_iterators_are_refused(keywords, error, text, ten):
    with pytest.raises(error, match=text):
        mx.io.ImageRecordIter(path_imgrec=ten, **{"batch_size": 4, "data_shape": (3, 4, 4), **keywords})


def test_unknown_keywords_cause_a_warning(ten):
    iterator(ten, preprocess_threads=4, verbose=False, ctx="gpu", prefetch_buffer=1, shuffle_chunk_size=4)
    with pytest.warns(UserWarning, match="'and_mirror': it is ignored; did you mean 'rand_mirror'"):
        iterator(ten, and_mirror=1)


def test_the_thread_ends_with_its_iterator(ten):
    before = set(threading.enumerate())
    batches = iterator(ten)
    thread = batches._ahead.thread
    batches.next()
    del batches
    gc.collect()
    thread.join(60)
    assert not thread.is_alive() and len(set(threading.enumerate()) - before) <= mx.core.threads.count()


# ---------------------------------------------------------------------------------------------------- boxes


def boxed(path, count=6) -> str:
    return write(path, [record([2, 5, *(each for j in range(i % 3 + 1) for each in (j, .1, .2, .5, .6))], i, picture())
                        for i in range(count)])


def boxes_of(batch):
    for row in batch.label[0].asnumpy():
        yield row[6:4 + int(row[3])].reshape(-1, 5)


def test_labels_of_boxes_are_those_of_mxnet(tmp_path):
    path = boxed(tmp_path / "a.rec")
    batches = mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 4, 6), batch_size=2)
    assert batches.provide_label == [("softmax_label", (2, 21))]
    first = batches.next().label[0].asnumpy()
    np.testing.assert_allclose(first, [[3, 4, 6, 7, 2, 5, 0, .1, .2, .5, .6, *[-1] * 10],
                                       [3, 4, 6, 12, 2, 5, 0, .1, .2, .5, .6, 1, .1, .2, .5, .6, *[-1] * 5]])
    batches = mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 18, 24), batch_size=2, label_pad_width=20,
                                       label_pad_value=-2, mean_r=3, std_r=2, rand_mirror_prob=1)
    batch = batches.next()
    assert batch.label[0].shape == (2, 24) and batch.label[0].asnumpy()[0, 11] == -2
    for boxes in boxes_of(batch):
        np.testing.assert_allclose(boxes[:, 1:], [[.5, .2, .9, .6]] * len(boxes), rtol=1e-6)
    expected = picture()[:, ::-1].transpose(2, 0, 1)[[2, 1, 0]].astype(float)
    expected[0] = (expected[0] - 3) / 2
    np.testing.assert_allclose(batch.data[0].asnumpy()[0], expected)
    with pytest.raises(ArgumentError, match="has a label of 17 numbers"):
        mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 4, 6), batch_size=2, label_pad_width=5)


@pytest.mark.parametrize("mode, height, width", [("force", 30, 36), ("shrink", 18, 24), ("fit", 27, 36)])
def test_boxes_follow_each_resize_mode(mode, height, width, tmp_path):
    batches = mx.io.ImageDetRecordIter(path_imgrec=boxed(tmp_path / "a.rec"), data_shape=(3, 30, 36), batch_size=2,
                                       resize_mode=mode)
    batch = batches.next()
    assert batch.label[0].asnumpy()[0, :3].tolist() == [3, height, width]
    data = batch.data[0].asnumpy()
    assert data.shape == (2, 3, 30, 36) and not data[:, :, height:].any() and not data[:, :, :, width:].any()


@pytest.mark.parametrize("keywords", [
    {"rand_pad_prob": 1, "max_pad_scale": 3}, {"rand_crop_prob": 1, "min_crop_scales": 0.3, "max_crop_scales": 0.9},
    {"rand_crop_prob": 1, "num_crop_sampler": 2, "min_crop_scales": (0.3, 0.5), "min_crop_aspect_ratios": 0.5,
     "max_crop_aspect_ratios": 2, "min_crop_overlaps": (0.1, 0.3), "crop_emit_mode": "overlap"},
    {"max_random_hue": 10, "random_hue_prob": 1, "max_random_contrast": 0.5, "random_contrast_prob": 1,
     "max_random_saturation": 10, "random_saturation_prob": 0.5, "max_random_illumination": 10,
     "random_illumination_prob": 0.5}])
def test_random_boxes_stay_in_their_images(keywords, tmp_path):
    path = boxed(tmp_path / "a.rec", 30)
    found = []
    for seed in (1, 1, 2):
        batch = mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 12, 12), batch_size=30, seed=seed,
                                         **keywords).next()
        for boxes in boxes_of(batch):
            assert len(boxes) and ((boxes[:, 1:] >= 0) & (boxes[:, 1:] <= 1)).all()
            assert (boxes[:, 3:] > boxes[:, 1:3]).all()
        found.append((batch.data[0].asnumpy(), batch.label[0].asnumpy()))
    assert all(np.array_equal(a, b) for a, b in zip(found[0], found[1]))
    assert not np.array_equal(found[0][0], found[2][0])


@pytest.mark.parametrize("keywords, text", [
    ({"resize_mode": "fits"}, "resize_mode"), ({"min_crop_scales": (0.1, 0.2)}, "num_crop_sampler=1"),
    ({"min_crop_overlaps": 0.5, "max_crop_overlaps": 0.2}, "the smaller one first")])
def test_mistakes_with_boxes_raise_errors(keywords, text, tmp_path):
    with pytest.raises(ArgumentError, match=text):
        mx.io.ImageDetRecordIter(path_imgrec=boxed(tmp_path / "a.rec"), data_shape=(3, 4, 6), batch_size=2, **keywords)


def test_a_label_without_boxes_is_refused(tmp_path):
    path = write(tmp_path / "a.rec", [record([1.0, 2.0], 0, picture())])
    with pytest.raises(FileFormatError, match="a label of 2 numbers"):
        mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 4, 6), batch_size=1)
