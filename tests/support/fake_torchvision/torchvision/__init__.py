"""A stand-in for torchvision: the names that timm's modules ask for while they are imported, and nothing behind them.

The torchvision that belongs to a torch comes from where that torch comes from, and is not to be had for every build
of it. No classifier of timm calls anything of it: its names are those of transforms, data sets and a frozen norm.
"""
