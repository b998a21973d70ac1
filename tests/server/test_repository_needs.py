"""What a repository needs of its server."""

import passports
from small_servers import ONNX, model

from engine.server import needs_of
from engine.server.repository_needs import Engine


def test_a_repository_says_what_it_needs(tmp_path):
    model(tmp_path, "a", ONNX + "response_cache { enable: true }\n")
    model(tmp_path, "words", 'name: "a"\nbackend: "python"\n', requirements_txt="# why\ntokenizers==0.22.1  # pinned\n")
    model(tmp_path, "all", 'name: "a"\nplatform: "ensemble"\n')
    folder = model(tmp_path, "fast", 'name: "a"\nplatform: "tensorrt_plan"\n')
    passports.save(folder, inputs={}, outputs={})
    needs = needs_of(tmp_path)
    assert needs.models == ("a", "all", "fast", "words")
    assert needs.backends == {"onnxruntime", "python", "tensorrt"}
    assert (needs.gpu, needs.cached) == (("fast",), ("a",))
    assert needs.engines == (Engine("fast", "10.13.0.35"),)
    assert needs.requirements == {"tokenizers==0.22.1": "words"}
