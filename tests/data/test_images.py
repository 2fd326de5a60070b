"""Images agree with MXNet's recorded answers; iterators over images."""

from __future__ import annotations

import contextlib
import io
import random
import warnings

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from tests.questions import of_each
from tests.recorded.mxnet_images import BOXES, CALLS, FILE, answers, picture

pytest.importorskip("PIL")

MXNET = np.load(FILE)


@of_each(CALLS)
def test_images_equal_those_of_mxnet(name):
    given = answers(mx, name)
    assert f"{name}|{len(given)}" not in MXNET.files
    for number, answer in enumerate(given):
        expected = MXNET[f"{name}|{number}"]
        assert answer.shape == expected.shape and answer.dtype == expected.dtype
        # Bytes are those of OpenCV; floats are summed in another order.
        np.testing.assert_allclose(answer.astype(float), expected.astype(float), rtol=0,
                                   atol=0 if answer.dtype == np.uint8 else 3e-3 if "rotate" in name else 1e-4)


@pytest.mark.parametrize("extension", [".jpg", ".png"])
@pytest.mark.parametrize("flag", [0, 1])
def test_decoded_images_equal_mxnets(extension, flag, tmp_path):
    data, expected = MXNET[f"file {extension}"].tobytes(), MXNET[f"decoded {extension} {flag}"]
    (tmp_path / "image").write_bytes(data)
    for image in (mx.image.imdecode(data, flag=flag), mx.img.imread(str(tmp_path / "image"), flag),
                  mx.image.imdecode(np.frombuffer(data, np.uint8), flag), mx.image.imdecode(bytearray(data), flag),
                  mx.image.imdecode(mx.nd.array(np.frombuffer(data, np.uint8), dtype="uint8"), flag)):
        assert image.dtype == np.uint8 and image.shape == expected.shape
        assert np.abs(image.asnumpy().astype(int) - expected).max() <= (1 if extension == ".jpg" else 0)
    turned = mx.image.imdecode(data, flag, to_rgb=0).asnumpy()
    assert np.array_equal(turned[:, :, ::-1], image.asnumpy())
    out = mx.nd.zeros(expected.shape, dtype="uint8")
    assert mx.image.imdecode(data, flag, out=out) is out and np.array_equal(out.asnumpy(), image.asnumpy())


def test_files_that_cannot_be_decoded_are_refused(tmp_path):
    data = MXNET["file .jpg"].tobytes()
    for wrong in (b"", b"abc", data[:20], data[:len(data) // 2], b"\xff\xd8\xff\xe0abc"):
        with pytest.raises(FileFormatError, match="imdecode"):
            mx.image.imdecode(wrong)
    with pytest.raises(FileNotFoundError):
        mx.image.imread(str(tmp_path / "image"))
    (tmp_path / "image").write_bytes(b"text")
    with pytest.raises(FileFormatError, match="image: cannot be decoded: no image of a known kind"):
        mx.image.imread(str(tmp_path / "image"))
    with pytest.raises(ArgumentError, match="flag=2"):
        mx.image.imdecode(data, flag=2)
    with pytest.raises(ArgumentError, match="got str"):
        mx.image.imdecode("text")


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize("way", ["imdecode", "imread", "unpack_img", "ImageIter", "ImageRecordIter"])
def test_no_program_is_started_over_an_image(way, tmp_path, monkeypatch):
    """Pillow would run Ghostscript for a file that begins like PostScript."""
    ran, eps, records = tmp_path / "ran", tmp_path / "eps", str(tmp_path / "a.rec")
    gs = tmp_path / "gs"
    gs.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    gs.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    eps.write_bytes(EPS)
    record = mx.recordio.pack((0, 1.0, 0, 0), EPS)
    with mx.recordio.MXRecordIO(records, "w") as file:
        file.write(record)
    ways = {"imdecode": lambda: mx.image.imdecode(EPS), "imread": lambda: mx.image.imread(eps),
            "unpack_img": lambda: mx.recordio.unpack_img(record),
            "ImageIter": lambda: mx.image.ImageIter(1, (3, 2, 2), path_imgrec=records).next(),
            "ImageRecordIter": lambda: mx.io.ImageRecordIter(path_imgrec=records, data_shape=(3, 2, 2), batch_size=1)}
    with pytest.raises(FileFormatError, match="no image of a known kind"):
        ways[way]()
    assert not ran.exists()


def saved(kind, size, mode="1", **options):
    from PIL import Image
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "WEBP", "TIFF", "GIF", "PPM"])
def test_images_of_every_file_format_are_decoded(kind):
    assert mx.image.imdecode(saved(kind, (5, 3), "RGB")).shape == (3, 5, 3)


@pytest.mark.parametrize("kind, options", [("PNG", {}), ("TIFF", {"compression": "group4"}), ("GIF", {}),
                                           ("WEBP", {"lossless": True})])
def test_an_image_with_more_pixels_than_its_file_justifies_is_refused(kind, options, monkeypatch):
    size = (3000, 3000)
    data = saved(kind, size, "RGB" if kind == "WEBP" else "1", **options)
    if len(data) * 1032 < 3000 * 3000:
        with pytest.raises(FileFormatError, match=f"imdecode: 3000 by 3000 pixels in a file of {len(data)} bytes"):
            mx.image.imdecode(data)
    monkeypatch.setenv("OPREG_IMAGE_PIXELS", "9000000")
    assert mx.image.imdecode(data, flag=0).shape == (3000, 3000, 1)
    monkeypatch.setenv("OPREG_IMAGE_PIXELS", "8999999")
    with pytest.raises(FileFormatError, match="expected at most 8999999"):
        mx.image.imdecode(data)
    monkeypatch.setenv("OPREG_IMAGE_PIXELS", "many")
    with pytest.raises(ArgumentError, match="OPREG_IMAGE_PIXELS='many'"):
        mx.image.imdecode(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "WEBP", "TIFF", "GIF", "PPM"])
def test_damaged_images_raise_errors(kind):
    """A damaged image is decoded, or refused with an error of opreg, whatever Pillow raises."""
    rng = random.Random(kind)
    sound = saved(kind, (9, 7), "RGB")
    for _ in range(150):
        data = bytearray(sound[:rng.randrange(len(sound))] if rng.random() < 0.3 else sound)
        for _ in range(rng.randrange(1, 4)):
            if data:
                data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
        with contextlib.suppress(FileFormatError), warnings.catch_warnings(action="ignore"):
            assert mx.image.imdecode(bytes(data)).size <= 3 * 2048 ** 2


@pytest.mark.parametrize("mode, pixel, color, gray", [
    ("L", 100, [100] * 3, 100), ("1", 1, [255] * 3, 255), ("P", 3, None, None), ("RGBA", (10, 20, 30, 40), [10, 20, 30],
                                                                                 18), ("I;16", 51200, [200] * 3, 200)])
def test_images_of_every_pixel_format_are_decoded(mode, pixel, color, gray, tmp_path):
    from PIL import Image
    image = Image.new(mode, (3, 2), pixel)
    if mode == "P":
        image.putpalette([1, 2, 3] * 256)
        color, gray = [1, 2, 3], 1
    image.save(tmp_path / "a.png")
    assert mx.image.imread(str(tmp_path / "a.png")).asnumpy()[1, 2].tolist() == color
    assert mx.image.imread(str(tmp_path / "a.png"), flag=0).asnumpy()[1, 2].tolist() == [gray]


def test_modules_have_mxnets_names():
    from opreg.image import ImageIter
    from opreg.image.detection import ImageDetIter
    assert mx.img is mx.image and mx.image.image.ImageIter is ImageIter and mx.image.det.ImageDetIter is ImageDetIter


def test_augmenters_describe_themselves():
    spoken = [each.dumps() for each in mx.image.CreateAugmenter(
        (3, 4, 4), resize=8, rand_crop=True, rand_resize=True, mean=True, brightness=0.1, pca_noise=0.1)]
    assert spoken[0] == '["resizeaug", {"size": 8, "interp": 2}]'
    assert spoken[1].startswith('["randomsizedcropaug", {"size": [4, 4], "area": 0.08, "ratio": [0.75, 1.333')
    assert spoken[3] == ["colorjitteraug", ['["brightnessjitteraug", {"brightness": 0.1}]']]
    assert spoken[4].startswith('["lightingaug", {"alphastd": 0.1, "eigval": [55.46, 4.794, 1.148], "eigvec": [[-0.56')
    assert spoken[5] == '["colornormalizeaug", {"mean": [123.68000030517578, 116.27999877929688, ' \
                        '103.52999877929688], "std": null}]'
    spoken = [each.dumps() for each in mx.image.CreateDetAugmenter((3, 4, 4), rand_crop=1, rand_pad=0.5)]
    assert spoken[0] == ["detrandomselectaug", [
        '["detrandomcropaug", {"min_object_covered": 0.1, "aspect_ratio_range": [0.75, 1.33], '
        '"area_range": [0.05, 3.0], "min_eject_coverage": 0.3, "max_attempts": 50}]']]
    assert spoken[1] == ["detrandomselectaug", [
        '["detrandompadaug", {"aspect_ratio_range": [0.75, 1.33], "area_range": [1.0, 3.0], "max_attempts": 50, '
        '"pad_val": [127, 127, 127]}]']]
    assert spoken[2] == ["detborrowaug", '["forceresizeaug", {"size": [4, 4], "interp": 2}]']


class Inverted(mx.image.Augmenter):
    """A user's augmenter."""

    def __init__(self):
        super().__init__(shift=mx.nd.array([255]))

    def __call__(self, src):
        return 255 - src


def test_a_users_augmenter_is_applied_and_described():
    assert Inverted().dumps() == '["inverted", {"shift": [255.0]}]'
    src = mx.nd.array(picture(), dtype="uint8")
    both = mx.image.DetBorrowAug(mx.image.SequentialAug([Inverted(), Inverted()]))
    image, boxes = both(src, BOXES)
    assert np.array_equal(image.asnumpy(), picture()) and boxes is BOXES
    with pytest.raises(NotImplementedError, match="does not define __call__"):
        mx.image.Augmenter()(src)


@of_each([
    (lambda x: mx.image.imresize(x, 0, 3), ValueError, "attribute w: expected int of at least 1, got 0"),
    (lambda x: mx.image.imresize(x, 3, 3, interp=7), ArgumentError, "interp=7"),
    (lambda x: mx.image.fixed_crop(x, 30, 0, 2, 2), ShapeError, r"from \(30, 0\)"),
    (lambda x: mx.image.random_size_crop(x, (3, 3), 0.1, (1, 1), nope=1), ArgumentError, "'nope'"),
    (lambda x: mx.image.imrotate(x.transpose((2, 0, 1)), 3), DTypeError, "float32"),
    (lambda x: mx.image.imrotate(x.astype("float32"), 3, True, True), ArgumentError, "exclude"),
    (lambda x: mx.image.CreateAugmenter((3, 2, 2), rand_resize=True), ArgumentError, "needs rand_crop"),
    (lambda x: mx.image.CreateAugmenter((3, 2, 2), mean=[1, 2]), ArgumentError, "mean"),
    (lambda x: mx.image.CreateAugmenter((3, 2, 2), std=np.ones(2)), ShapeError, "std"),
    (lambda x: mx.image.DetBorrowAug(3), ArgumentError, "got int"),
    (lambda x: mx.image.DetRandomSelectAug([3]), ArgumentError, "got int"),
    (lambda x: mx.image.CreateMultiRandCropAugmenter([1, 2], area_range=[1, 2, 3]), ArgumentError, "lists"),
    (lambda x: mx.image.ImageIter(2, (3, 2, 2)), ArgumentError, "expected a source of images"),
    (lambda x: mx.image.ImageIter(2, (1, 2, 2), imglist=[[1, "a"]]), ShapeError, "three channels"),
    (lambda x: mx.image.ImageIter(2, (3, 2, 2), imglist=[]), ArgumentError, "no images"),
    (lambda x: mx.image.ImageIter(2, (3, 2, 2), imglist=[[1, "a"]], dtype="int8"), DTypeError, "int8"),
    (lambda x: mx.image.ImageIter(2, (3, 2, 2), imglist=[[1, "a"]], last_batch_handle="pda"), ArgumentError, "'pad'"),
    (lambda x: mx.image.ImageIter(2, (3, 2, 2), imglist=[[1, "a"]], part_index=2, num_parts=2), ArgumentError, "of n"),
])
def test_wrong_uses_of_image_functions_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(mx.nd.array(picture(), dtype="uint8"))


def test_crops_that_cannot_be_drawn_leave_the_image():
    src = mx.nd.array(picture(), dtype="uint8")
    for kind, keywords in ((mx.image.DetRandomCropAug, {"area_range": (0.5, 0.1)}),
                           (mx.image.DetRandomCropAug, {"aspect_ratio_range": 0.0}),
                           (mx.image.DetRandomPadAug, {"area_range": 1.0})):
        with pytest.warns(UserWarning, match="has no effect"):
            augmenter = kind(**keywords)
        assert augmenter(src, BOXES)[0] is src


# ------------------------------------------------------------------------------------------------ iterators


@pytest.fixture
def numbered(tmp_path):
    """Ten images of one colour each, as files, in a list, and in records."""
    lines = []
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w") as records:
        for i in range(10):
            record = mx.recordio.pack_img((0, float(i), i, 0), np.full((6, 8, 3), 3 * i, np.uint8), 3, ".png")
            records.write_idx(i, record)
            (tmp_path / f"{i}.png").write_bytes(mx.recordio.unpack(record)[1])
            lines.append(f"{i}\t{10 * i}\t{i}.png\n")
    (tmp_path / "a.lst").write_text("".join(lines))
    return tmp_path


def seen(batches):
    found = []
    for batch in batches:
        labels = batch.label[0].asnumpy()
        assert np.array_equal(batch.data[0].asnumpy()[:, 0, 0, 0], 3 * labels)
        found.append((labels.tolist(), batch.pad))
    return found


@pytest.mark.parametrize("handle, rounds", [
    ("pad", [[([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9, 0, 1], 2)]] * 2),
    ("discard", [[([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0)]] * 2),
    ("roll_over", [[([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0)], [([8, 9, 0, 1], 2), ([2, 3, 4, 5], 0), ([6, 7, 8, 9], 0)],
                   [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0)]]),
])
@pytest.mark.parametrize("indexed", [True, False])
def test_images_are_read_in_batches(handle, rounds, indexed, numbered):
    batches = mx.image.ImageIter(4, (3, 4, 4), path_imgrec=str(numbered / "a.rec"), last_batch_handle=handle,
                                 path_imgidx=str(numbered / "a.idx") if indexed else None)
    assert batches.provide_data == [("data", (4, 3, 4, 4))] and batches.provide_label == [("softmax_label", (4,))]
    for expected in rounds:
        assert seen(batches) == expected
        assert seen(batches) == []
        batches.reset()
    batches.hard_reset()
    assert seen(batches) == rounds[0]


def test_a_batch_larger_than_all_images_repeats_them(numbered):
    (batch,) = mx.image.ImageIter(24, (3, 4, 4), path_imgrec=str(numbered / "a.rec"))
    assert batch.label[0].asnumpy().tolist() == [*range(10), *range(10), *range(4)] and batch.pad == 14


def test_images_are_divided_into_parts_and_shuffled(numbered):
    files = {"path_imgrec": str(numbered / "a.rec"), "path_imgidx": str(numbered / "a.idx")}
    parts = [mx.image.ImageIter(1, (3, 4, 4), part_index=i, num_parts=3, **files) for i in range(3)]
    assert [[batch.label[0].asscalar() for batch in part] for part in parts] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    random.seed(3)
    expected = list(range(10))
    random.shuffle(expected)
    random.seed(3)
    batches = mx.image.ImageIter(5, (3, 4, 4), shuffle=True, **files)
    assert [label for labels, _ in seen(batches) for label in labels] == expected
    with pytest.raises(ArgumentError, match="path_imgidx"):
        mx.image.ImageIter(5, (3, 4, 4), shuffle=True, path_imgrec=files["path_imgrec"])


def test_images_are_read_by_lists(numbered):
    root = str(numbered)
    batches = mx.image.ImageIter(5, (3, 4, 4), path_imglist=f"{root}/a.lst", path_root=root)
    assert [batch.label[0].asnumpy().tolist() for batch in batches] == [[0, 10, 20, 30, 40], [50, 60, 70, 80, 90]]
    batches = mx.image.ImageIter(2, (3, 4, 4), path_imglist=f"{root}/a.lst", path_imgrec=f"{root}/a.rec",
                                 path_imgidx=f"{root}/a.idx")
    assert batches.next().label[0].asnumpy().tolist() == [0, 10]
    rows = [[1, 2, "1.png"], [3, 4, "2.png"]]
    batches = mx.image.ImageIter(2, (3, 4, 4), 2, imglist=rows, path_root=root, label_name="y")
    assert batches.provide_label == [("y", (2, 2))]
    batch = batches.next()
    assert batch.label[0].asnumpy().tolist() == [[1, 2], [3, 4]] and batch.data[0].asnumpy()[1, 0, 0, 0] == 6
    batches = mx.image.ImageIter(1, (3, 4, 4), imglist=[[[7], "3.png"], [[8], "4.png"]], path_root=root)
    assert [batch.label[0].asscalar() for batch in batches] == [7, 8]
    (numbered / "a.lst").write_text("1\tx\ty\n")
    with pytest.raises(FileFormatError, match="line 1"):
        mx.image.ImageIter(1, (3, 4, 4), path_imglist=f"{root}/a.lst", path_root=root)


def test_faults_of_images_are_named(numbered):
    (numbered / "1.png").write_bytes(b"nonsense")
    batches = mx.image.ImageIter(3, (3, 4, 4), imglist=[[0, "0.png"], [1, "1.png"]], path_root=str(numbered))
    with pytest.raises(FileFormatError, match="no image of a known kind") as caught:
        batches.next()
    assert caught.value.__notes__ == ["image 1.png of ImageIter"]
    batches = mx.image.ImageIter(2, (3, 4, 4), imglist=[[0, "0.png"]], path_root=str(numbered), aug_list=[])
    with pytest.raises(ShapeError, match=r"expected shape \(3, 4, 4\) and 1 labels, got \(3, 6, 8\)"):
        batches.next()


def test_a_subclass_leaves_images_out(numbered):
    class Dark(mx.image.ImageIter):
        def check_valid_image(self, data):
            if data[0].asnumpy().max() > 15:
                raise RuntimeError("too bright")

        def augmentation_transform(self, data):
            return super().augmentation_transform(data) + 100

    batches = Dark(4, (3, 4, 4), path_imgrec=str(numbered / "a.rec"))
    assert [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in batches] == [
        ([0, 1, 2, 3], 0), ([4, 5, 0, 1], 2)]
    batches.reset()
    assert batches.next().data[0].asnumpy()[1].max() == 103


def boxed(path, labels):
    with mx.recordio.MXRecordIO(str(path), "w") as records:
        for number, label in enumerate(labels):
            records.write(mx.recordio.pack_img((0, label, number, 0), picture(), 3, ".png"))


HEAD = [4, 5, 0, 0]


def test_images_with_boxes_are_read_in_batches(tmp_path):
    boxed(tmp_path / "a.rec", [[*HEAD, 0, .1, .2, .5, .6], [*HEAD, 1, 0, 0, 1, 1, 2, .5, .5, .6, .6],
                               [*HEAD, 1, .5, .5, .5, .5], [*HEAD, 3, .2, .2, .4, .4, 1, .9, 0, .1, 1]])
    batches = mx.image.ImageDetIter(2, (3, 10, 12), path_imgrec=str(tmp_path / "a.rec"))
    assert batches.provide_label == [("label", (2, 2, 5))] and batches.label_shape == (2, 5)
    first, second = batches
    assert first.data[0].shape == (2, 3, 10, 12)
    empty = [-1] * 5
    np.testing.assert_allclose(first.label[0].asnumpy(), [[[0, .1, .2, .5, .6], empty],
                                                          [[1, 0, 0, 1, 1], [2, .5, .5, .6, .6]]])
    np.testing.assert_allclose(second.label[0].asnumpy()[0], [[3, .2, .2, .4, .4], empty])  # the third has no area
    assert second.pad == 1
    other = mx.image.ImageDetIter(2, (3, 10, 12), path_imgrec=str(tmp_path / "a.rec"))
    other.reshape((3, 6, 6), (5, 5))
    assert batches.sync_label_shape(other) is other and batches.provide_label == [("label", (2, 5, 5))]
    assert other.provide_data == [("data", (2, 3, 6, 6))]
    for shape in ((1, 5), (5, 6), (5,)):
        with pytest.raises(ShapeError, match="at least"):
            batches.reshape(label_shape=shape)
    drawn = list(mx.image.ImageDetIter(2, (3, 10, 12), path_imgrec=str(tmp_path / "a.rec"), mean=True).draw_next(
        color=(255, 0, 0), thickness=1, mean=True, id2labels={0: "cat"}))
    assert len(drawn) == 3 and drawn[1][0, 0].tolist() == [0, 0, 255] and drawn[0].dtype == np.uint8


@pytest.mark.parametrize("label", [[1, 2, 3], [2, 5, 0, 0, 0, 1, 1, 9], [1, 5, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1, 1]])
def test_labels_that_hold_no_boxes(label, tmp_path):
    boxed(tmp_path / "a.rec", [label])
    with pytest.raises(FileFormatError, match="image 0: "):
        mx.image.ImageDetIter(1, (3, 10, 12), path_imgrec=str(tmp_path / "a.rec"))


def test_random_boxes_stay_in_their_images(tmp_path):
    boxed(tmp_path / "a.rec", [[*HEAD, 0, .1, .2, .5, .6, 1, .4, .4, .9, .9]] * 6)
    batches = mx.image.ImageDetIter(3, (3, 10, 12), path_imgrec=str(tmp_path / "a.rec"), rand_crop=0.5, rand_pad=0.5,
                                    rand_mirror=True)
    for _ in range(4):
        for batch in batches:
            boxes = batch.label[0].asnumpy().reshape(-1, 5)
            boxes = boxes[boxes[:, 0] >= 0]
            assert ((boxes[:, 1:] >= 0) & (boxes[:, 1:] <= 1)).all() and (boxes[:, 3:] > boxes[:, 1:3]).all()
        batches.reset()
