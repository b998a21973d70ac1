"""Image names: how the names of image files end."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")


def is_image(name: str) -> bool:
    """Tell whether a file is an image by its name; the bytes of the file may say otherwise."""
    return name.lower().endswith(SUFFIXES)
