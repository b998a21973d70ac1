from engine.report.paths import shown


def test_a_path_below_the_working_directory_is_relative_and_another_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "build" / "minilm") == "build/minilm"
    assert shown(tmp_path.parent / "elsewhere") == str(tmp_path.parent / "elsewhere")
