"""Classes as they are served: best first."""

import numpy as np

from engine.kit.triton.served.classify import Work as Classify


def test_scores_come_best_first_and_do_not_overflow(tmp_path):
    logits = np.array([[1000.0, -1000.0, 0.0]], dtype=np.float32)
    for score, expected in {"softmax": [1, 0, 0], "sigmoid": [1, 0.5, 0], "number": [1000, 0, -1000]}.items():
        outputs = Classify(tmp_path, {"labels": ["a", "b", "c"], "scores": score})({"logits": logits})
        assert np.allclose(outputs["scores"], [expected])
        assert outputs["labels"].tolist() == [[b"a", b"c", b"b"]]
