"""Lets one module of a large package be imported where most of what the package imports is not installed: absent third
parties become modules whose every name is an inert stand-in. For reading predicates, not for running kernels."""
import importlib.abc
import importlib.machinery
import sys
import types


class Inert(type):
    """A class that stands for any name: it can be called, decorated with, subclassed, subscripted, compared."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return inert(name)

    def __call__(cls, *args, **named):
        # As a decorator it gives back what it decorates.
        if len(args) == 1 and not named and callable(args[0]):
            return args[0]
        return cls

    def __getitem__(cls, item):
        return cls

    def __iter__(cls):
        return iter(())

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __lt__(cls, other):
        return False

    __gt__ = __ge__ = __le__ = __lt__


def inert(name):
    return Inert(name, (), {"__module__": "stand_ins"})


class StandInModule(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = inert(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: finds what of the packages `names` is not installed. Nothing else: a package may ask for a module to
    learn that it is absent."""

    def __init__(self, names):
        self.names = set(names)
        self.made = []

    def find_spec(self, fullname, path=None, target=None):
        top = fullname.split(".")[0]
        if top not in self.names or (top != fullname and not isinstance(sys.modules.get(top), StandInModule)):
            return None  # also what an installed package lacks
        self.made.append(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return StandInModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def install(names):
    finder = Finder(names)
    sys.meta_path.append(finder)
    return finder
