import hashlib
import json

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
TWO = Licensed(
    role="model",
    source="the Python package some_weights",
    revision="1.0",
    statements=(*MODEL.statements, LicenseStatement(text="BSD License", by="the metadata of some_weights 1.0")),
)


def write(out, about=MODEL):
    checkpoint, package = out / "checkpoint", out / "package"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    (package / "net" / "1").mkdir(parents=True)
    (package / "net" / "1" / "model.onnx").write_bytes(b"graph")
    parts = [LicenseFiles(about, {"model.LICENSE": b"text\r\n"}), LicenseFiles(UNKNOWN)]
    notices.write(package, parts, name="net", checkpoint=checkpoint, tools=("numpy", "no-such-tool"), image="25.06")
    return package


def test_a_package_has_the_texts_and_a_notice_that_says_what_is_not_known(tmp_path):
    package = write(tmp_path)
    assert [path.name for path in package.iterdir() if path.is_dir()] == ["net"], "Triton takes folders for models"
    assert (package / "model.LICENSE").read_bytes() == b"text\r\n"
    notice = (package / "NOTICE").read_text()
    assert "model: hf:owner/name\n" in notice
    assert "Apache-2.0: stated by README.md (license)" in notice
    assert "tokenizer: a local file or directory\n  revision: not known\n  licence: not known\n" in notice


def test_the_card_of_a_model_is_no_text_of_the_package(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    assert licenses.read("model", tmp_path, source="hf:a/b", revision=None).texts == {}


def bill(package):
    return json.loads((package / "sbom.cdx.json").read_text())


def test_the_bill_keeps_the_official_schema(tmp_path):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    for about in (MODEL, TWO):
        text = (write(tmp_path / str(len(about.statements)), about) / "sbom.cdx.json").read_text()
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None, f"{len(about.statements)} statements"


def test_the_bill_has_model_tokenizer_server_and_the_digest_of_each_file(tmp_path):
    package = write(tmp_path)
    components = {each["bom-ref"]: each for each in bill(package)["components"]}
    assert components["model"]["purl"] == f"pkg:huggingface/owner/name@{'0' * 40}"
    assert components["model"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert components["model"]["components"][0]["hashes"][0]["content"] == hashlib.sha256(b"weights").hexdigest()
    assert components["package/net/1/model.onnx"]["hashes"][0]["content"] == hashlib.sha256(b"graph").hexdigest()
    assert "licenses" not in components["tokenizer"]
    assert components["server"]["name"] == "25.06"
    assert "package/sbom.cdx.json" not in components


def test_equal_packages_have_equal_bills_and_another_file_another_serial_number(tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    assert (first / "sbom.cdx.json").read_bytes() == (second / "sbom.cdx.json").read_bytes()
    assert bill(first)["serialNumber"] != bill(write(tmp_path / "c", TWO))["serialNumber"]
