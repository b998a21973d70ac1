from engine.tasks import *
