from engine.runtimes import *
