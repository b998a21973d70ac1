"""Names of image files."""

from engine.text import image_names


def test_image_files_are_known_by_their_names_in_either_case():
    assert all(map(image_names.is_image, ("a.png", "b/c.JPG", "x.tiff")))
    assert not any(map(image_names.is_image, ("png", "a.png.txt", "a.npz", "")))
