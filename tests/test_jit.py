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
