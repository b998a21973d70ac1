"""Transforms: one class that timm derives from."""


class ToTensor:
    def __init__(self):
        raise NotImplementedError("a stand-in for torchvision transforms nothing")
