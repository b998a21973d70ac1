"""Image files become the tensors that transformers' own Pil processors make of them, bit for bit."""

import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import image_files
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kit.images import preparation, processors, settings
from engine.kit.images.preparation import Preparation
from engine.kit.onnx.onnx_files import Input

pytest.importorskip("PIL", reason="Pillow is not installed: no image can be prepared")

FREE = {"pixel_values": Input("pixel_values", "float32", ("batch", 3, "height", "width"))}
MASK = {"pixel_mask": Input("pixel_mask", "int64", ("batch", "height", "width"))}
SMALL = {"size": {"shortest_edge": 40, "longest_edge": 61}}
FILES = {
    name: [{}] for name in processors.DEFAULTS if "Det" not in name and name != "Yolos"
} | {
    "ViT": [{}, {"size": 30},
            {"size": {"shortest_edge": 33}, "do_center_crop": True, "crop_size": {"height": 90, "width": 25}},
            {"do_rescale": False}, {"do_normalize": False}, {"rescale_factor": 1 / 127.5, "resample": 0},
            {"size": {"max_height": 30, "max_width": 40}, "do_pad": True, "pad_size": {"height": 41, "width": 40}}],
    "CLIP": [{}, {"size": 50, "crop_size": 45}, {"do_resize": False}],
    "ConvNext": [{}, {"size": 64}, {"size": {"shortest_edge": 50}, "crop_pct": 0.9}],
    "PoolFormer": [{}, {"size": {"height": 30, "width": 50}, "crop_size": 28}],
    "MobileViT": [{}, {"do_normalize": True, "do_flip_channel_order": False}],
    "EfficientNet": [{}, {"rescale_offset": True, "include_top": False}],
    "Detr": [SMALL, {"size": 40, "max_size": 55}], "ConditionalDetr": [SMALL], "DeformableDetr": [SMALL],
    "Yolos": [SMALL, {"size": 48, "max_size": 70}],
    "RTDetr": [{"size": {"height": 48, "width": 60}}],
}  # fmt: skip
CASES = [pytest.param(name, file, id=f"{name}-{file}") for name, files in FILES.items() for file in files]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return image_files.write_files(tmp_path_factory.mktemp("images"))


def plain(**own):
    """Return the settings that keep an image as it is, but for those in `own`."""
    return {
        "output": "images", "dtype": "uint8", "last": True, "shape": [None, None], "mode": "RGB",
        "on_white": False, "reversed": False,
        "upright": True, "resize": None, "resample": 2, "crop": None, "fill": [0, 0, 0], "half_even": True,
        "scale": None, "normalize": [], "pad": None, "mask": None, "sizes": False, **own,
    }  # fmt: skip


def png(array):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def saved(folder, name, file):
    """Write a checkpoint with an image processor, and return the settings and the processor itself."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    (folder / "config.json").write_text('{"model_type": "vit"}')
    (folder / "preprocessor_config.json").write_text(
        json.dumps({"image_processor_type": f"{name}ImageProcessor", **file})
    )
    specs = FREE | (MASK if "Det" in name or name == "Yolos" else {})
    own = json.loads(json.dumps(settings.of_checkpoint(folder, specs, {}, sizes=True)))
    return Preparation(own), transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")


@pytest.mark.parametrize(("name", "file"), CASES)
def test_each_kind_of_file_is_what_transformers_makes_of_it(name, file, files, tmp_path):
    prepare, processor = saved(tmp_path, name, file)
    from transformers.image_utils import load_image

    for kind in image_files.GOOD:
        image = load_image(str(files[kind]))
        try:
            expected = processor(image, return_tensors="np")
        except ValueError:  # of sizes of no pixel, and of images larger than pad_size
            with pytest.raises(ValueError, match="IMAGE: "):
                prepare.tensors([files[kind].read_bytes()])
            continue
        tensors = prepare.tensors([files[kind].read_bytes()])
        assert tensors["image_sizes"].tolist() == [[image.height, image.width]]
        assert tensors["pixel_values"].dtype == np.float32
        assert np.array_equal(tensors["pixel_values"], expected["pixel_values"]), kind
        if "pixel_mask" in tensors and "pixel_mask" in expected:
            assert np.array_equal(tensors["pixel_mask"], expected["pixel_mask"]), kind


@pytest.mark.parametrize("name", ["Detr", "Yolos"])
def test_files_of_different_sizes_are_padded_together_with_a_mask(name, files, tmp_path):
    prepare, processor = saved(tmp_path, name, {"size": {"shortest_edge": 60, "longest_edge": 100}})
    from transformers.image_utils import load_image

    kinds = ["jpeg", "wide", "turned", "tall"]
    expected = processor([load_image(str(files[kind])) for kind in kinds], return_tensors="np")
    tensors = prepare.tensors([files[kind].read_bytes() for kind in kinds])
    assert np.array_equal(tensors["pixel_values"], expected["pixel_values"])
    assert np.array_equal(tensors["pixel_mask"], expected["pixel_mask"])
    assert not tensors["pixel_mask"].all()


def test_files_that_become_different_sizes_are_no_batch(files):
    prepare = Preparation(plain(resize={"shortest_edge": 20}))
    assert prepare.tensors([])["images"].shape == (0, 0, 0, 3)
    with pytest.raises(ValueError, match=r"IMAGE: files of one request become tensors of one size, .* 20 x 20"):
        prepare.tensors([files["wide"].read_bytes(), png(np.zeros((9, 9, 3), np.uint8))])
    fixed = Preparation(plain(resize={"shortest_edge": 20}, shape=[20, 24]))
    with pytest.raises(ValueError, match="IMAGE: it becomes 20 x 87 pixels, and the model takes 24 x 20"):
        fixed.tensors([files["tall"].read_bytes()])


@pytest.mark.filterwarnings("ignore:Image size")  # Pillow's own warning of 90 megapixels
@pytest.mark.parametrize(
    ("kind", "what"),
    [("broken", "IMAGE: "), ("truncated", "IMAGE: OSError: .*truncated"), ("empty", "IMAGE: 0 bytes that are no image"),
     ("huge", "IMAGE: 10000 x 10000 pixels; at most 50000000 pixels are taken"),
     ("mislabelled", "IMAGE: 800 bytes that are no image that Pillow can read")],
)  # fmt: skip
def test_a_file_that_is_no_image_is_refused_at_once_and_plainly(kind, what, files):
    prepare, content = Preparation(plain(resize={"height": 8, "width": 8})), files[kind].read_bytes()
    began = time.monotonic()
    with pytest.raises(ValueError, match=what) as caught:
        prepare.tensors([content])
    assert time.monotonic() - began < 0.5, "nothing is decoded"
    assert "\n" not in str(caught.value)
    assert "0x" not in str(caught.value), "an address in memory tells nobody anything"


def test_a_thin_image_does_not_become_a_huge_one():
    thin = png(np.zeros((30_000, 1, 3), np.uint8))
    with pytest.raises(ValueError, match="IMAGE: 224 x 6720000 pixels; at most"):
        Preparation(plain(resize={"shortest_edge": 224})).tensors([thin])
    with pytest.raises(ValueError, match="IMAGE: 1 x 30000 pixels would become 0 x 1333"):
        Preparation(plain(resize={"shortest_edge": 800, "longest_edge": 1333})).tensors([thin])


def test_postscript_is_never_run(files):
    from PIL import Image

    file = io.BytesIO()
    Image.open(files["rgb"]).save(file, "EPS")
    with pytest.raises(ValueError, match="no image that Pillow can read"):
        Preparation(plain()).tensors([file.getvalue()])


def test_one_preparation_serves_several_threads(files):
    prepare = Preparation(plain(dtype="float32", scale=1 / 255, resize={"height": 32, "width": 32}))
    contents = [files[kind].read_bytes() for kind in image_files.GOOD] * 4
    alone = [prepare.tensors([content])["images"] for content in contents]
    ready = threading.Barrier(4)

    def wait_and_prepare(start):
        ready.wait()
        return [prepare.tensors([content])["images"] for content in contents[start::4]]

    with ThreadPoolExecutor(4) as pool:
        for start, prepared in enumerate(pool.map(wait_and_prepare, range(4))):
            assert all(map(np.array_equal, prepared, alone[start::4]))


SIDE = st.integers(1, 3000)


@given(SIDE, SIDE, st.integers(1, 900), st.integers(1, 1400))
def test_sizes_are_rounded_as_transformers_rounds_them(height, width, short, longest):
    transforms = pytest.importorskip("transformers.image_transforms", reason="transformers is not installed")
    from transformers.models.yolos import image_processing_pil_yolos as yolos

    edges = {"shortest_edge": short, "longest_edge": longest}
    target = preparation._target
    assert target(edges, height, width) == transforms.get_size_with_aspect_ratio((height, width), short, longest)
    expected = yolos.get_size_with_aspect_ratio_yolos((height, width), short, longest)
    assert target({**edges, "multiple": 16}, height, width) == expected
    image = np.broadcast_to(np.uint8(0), (3, height, width))
    expected = transforms.get_resize_output_image_size(
        image, short, default_to_square=False, input_data_format="channels_first"
    )
    assert target({"shortest_edge": short}, height, width) == expected


@pytest.mark.parametrize(
    ("resize", "own", "expected"),
    [({"shortest_edge": 10}, (40, 20), (20, 10)), ({"shortest_edge": 10}, (20, 41), (10, 20)),
     ({"height": 10, "width": 9}, (40, 20), (9, 10)), ({"inside": [10, 10]}, (40, 20), (10, 5)),
     ({"cover": [10, 30]}, (40, 20), (30, 15))],
)  # fmt: skip
def test_images_are_scaled_as_timm_scales_them(resize, own, expected):
    height, width = preparation._target(resize, own[1], own[0])
    assert (width, height) == expected


def test_what_a_border_adds_is_the_fill_and_a_grey_image_has_one_channel():
    red = np.zeros((4, 10, 3), np.uint8) + np.uint8([255, 0, 0])
    [wide] = Preparation(plain(crop=[8, 8], fill=[128, 128, 128])).tensors([png(red)])["images"]
    assert wide[0, 0].tolist() == [128, 128, 128]
    assert wide[2, 0].tolist() == [255, 0, 0]
    grey = Preparation(plain(mode="L", crop=[8, 8], fill=[0])).tensors([png(np.full((3, 3), 7, np.uint8))])["images"]
    assert grey[0, 4, 1:6, 0].tolist() == [0, 7, 7, 7, 0]


def test_channels_are_reversed_before_they_are_normalized():
    made = Preparation(plain(dtype="float32", reversed=True, last=False, normalize=[[[1, 2, 3], [1, 1, 2]]]))
    [tensor] = made.tensors([png(np.uint8([[[10, 20, 30]]]))])["images"]
    assert tensor.reshape(3).tolist() == [29, 18, 3.5]
