import threading
from types import FunctionType

from vdsh.jit import Lazy


def test_a_second_thread_waits_until_all_that_a_kernel_calls_is_made():
    """It called the kernel while a function it needs was not made: numba could not type it."""
    names, begun, go_on = {}, threading.Event(), threading.Event()

    def make_helper(function):
        begun.set()
        assert go_on.wait(10)
        return function

    names["outer"] = outer = Lazy(FunctionType((lambda: helper()).__code__, names), lambda f: f)  # noqa: F821
    names["helper"] = Lazy(lambda: "made", make_helper)
    first = threading.Thread(target=outer)
    first.start()
    assert begun.wait(10)
    found = []
    second = threading.Thread(target=lambda: found.append((outer(), type(names["helper"]))))
    second.start()
    second.join(0.2)
    waited = not found
    go_on.set()
    first.join(10)
    second.join(10)
    assert waited and found == [("made", FunctionType)]


def test_no_kernel_of_a_module_is_shown_before_all_are_made():
    """A thread that found the first one changed called it, and numba met the second unmade."""
    names, seen = {}, []

    def make(function):
        seen.append({name: isinstance(value, Lazy) for name, value in names.items()})
        return function

    for name in ("first", "second"):
        names[name] = Lazy(FunctionType((lambda: "made").__code__, names), make)
    assert names["first"]() == "made"
    assert seen == [{"first": True, "second": True}] * 2
    assert not any(isinstance(value, Lazy) for value in names.values())
