from engine.kit.checkpoints import licenses
from engine.kit.checkpoints.licenses import LicenseFiles
from engine.kit.triton import notices
from engine.recipe.licenses import Licensed, LicenseStatement

MODEL = Licensed(
    role="model",
    source="hf:owner/name",
    revision="0" * 40,
    statements=(LicenseStatement(text="apache-2.0", by="README.md (license)", spdx="Apache-2.0"),),
    files=("model.LICENSE",),
)
UNKNOWN = Licensed(role="tokenizer", source="a local file or directory")


def write(out):
    checkpoint, package = out / "checkpoint", out / "package"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    (package / "net" / "1").mkdir(parents=True)
    (package / "net" / "1" / "model.onnx").write_bytes(b"graph")
    parts = [LicenseFiles(MODEL, {"model.LICENSE": b"text\r\n"}), LicenseFiles(UNKNOWN)]
    notices.write(package, parts, name="net", checkpoint=checkpoint, tools=("numpy", "no-such-tool"), image="25.06")
    return package


def test_a_package_has_the_texts_and_a_notice_that_says_what_is_not_known(tmp_path):
    package = write(tmp_path)
    assert (package / "model.LICENSE").read_bytes() == b"text\r\n"
    notice = (package / "NOTICE").read_text()
    assert "model: hf:owner/name\n" in notice
    assert "Apache-2.0: stated by README.md (license)" in notice
    assert "tokenizer: a local file or directory\n  revision: not known\n  licence: not known\n" in notice


def test_all_new_files_lie_beside_the_folders_that_triton_takes_for_models(tmp_path):
    package = write(tmp_path)
    assert [path.name for path in package.iterdir() if path.is_dir()] == ["net"]


def test_the_card_of_a_model_is_no_text_of_the_package(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    assert licenses.read("model", tmp_path, source="hf:a/b", revision=None).texts == {}
