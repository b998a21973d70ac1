"""Names of data sets; whoever makes one learns that it is not there."""


class _Missing:
    def __init__(self, *_args, **_options):
        raise NotImplementedError("a stand-in for torchvision has no data sets")


class CIFAR10(_Missing): ...


class CIFAR100(_Missing): ...


class FashionMNIST(_Missing): ...


class ImageFolder(_Missing): ...


class KMNIST(_Missing): ...


class MNIST(_Missing): ...
