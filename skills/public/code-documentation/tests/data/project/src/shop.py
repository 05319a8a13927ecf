"""A shop."""
from typing import overload

__all__ = ["buy", "Cart", "Missing"]


def buy(item, count, _hint=None):
    """Buy something.

    The item is taken from the shelf.
    """
    if count < 1:
        raise ValueError("count")


def helper():
    pass


class Cart:
    """What is bought."""

    @overload
    def add(self, item): ...

    def add(self, item):
        return item

    @property
    def total(self):
        """The sum."""

    @total.setter
    def total(self, value):
        pass

    def _inner(self):
        pass


class Missing:
    pass
