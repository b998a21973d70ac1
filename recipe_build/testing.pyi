from engine.testing import *
