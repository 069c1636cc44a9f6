"""Write api.md and cli.md from docstrings, signatures and help texts.

`make docs` writes them to build/docs, `make site` into the pages of the site.

Signatures are taken from the source, not from running objects, so that they read as written and
do not depend on the versions of Python and numpy.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "docs"
MODULES = (
    "vdsh",
    "vdsh.documents",
    "vdsh.text",
    "vdsh.codes",
    "vdsh.hashers",
    "vdsh.explain",
    "vdsh.search",
    "vdsh.store",
    "vdsh.export",
    "vdsh.datasets",
    "vdsh.evaluation",
    "vdsh.paper.protocol",
    "vdsh.server.app",
    "vdsh.errors",
)
SHARED = ("vdsh.store.learning", "vdsh.store.verbs")  # whose methods classes inherit
_WIDTH = 100
_MADE = "<!-- made by docs/make_references.py -->"
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the content of each page by its name."""
    return {"api.md": api_page(), "cli.md": cli_page()}


def api_page() -> str:
    """Describe every public name of the documented modules, each once."""
    parts = [
        "# Python reference",
        _MADE,
        "Every public name, from its docstring. Shapes are in the text because types cannot say "
        "them. What a method's settings mean is in [models](models.md) and "
        "[baselines](baselines.md).",
    ]
    homes: dict[int, str] = {}
    for name in MODULES:
        module = import_module(name)
        parts.append(f"## {name}\n\n{inspect.getdoc(module)}")
        for public in public_names(module):
            value = getattr(module, public)
            if id(value) in homes and not isinstance(value, str):
                parts.append(f"`{public}`: see {homes[id(value)]}.")
                continue
            homes[id(value)] = name
            parts += _describe(public, value)
    return "\n\n".join(parts) + "\n"


def public_names(module: Any) -> list[str]:
    """List `__all__`, or what the module itself defines in public."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )


def _describe(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        node = _parse(value)
        yield f"### {name}\n\n```python\n{_class_signature(value, node)}\n```"
        yield _markdown(_own_doc(node))
        shared = [_parse(base) for base in value.__mro__ if base.__module__ in SHARED]
        methods: dict[str, Any] = {}
        for part in (part for n in (node, *shared) for part in n.body if _is_public_method(part)):
            methods.setdefault(part.name, part)
        for method in methods.values():
            yield f"**`{name}.{_method_signature(method)}`**"
            yield _markdown(_own_doc(method))
    elif inspect.isfunction(value):
        node = _parse(value)
        yield f"### {name}\n\n```python\n{_function_signature(node)}\n```"
        yield _markdown(_own_doc(node))
    else:
        yield f"### `{name}`\n\n{_constant(value)}"


def _is_public_method(part: ast.stmt) -> bool:
    return isinstance(part, ast.FunctionDef) and not part.name.startswith("_")


def _parse(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _own_doc(node: Any) -> str:
    return ast.get_docstring(node) or ""


def _class_signature(value: type, node: ast.ClassDef) -> str:
    """Write a class as it is made: from `__init__`, or from its fields."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _wrap(f"class {node.name}", _arguments(part), "")
    fields = _fields(value, node)
    if not fields or {ast.unparse(base) for base in node.bases} & {"ABC", "TransformerMixin"}:
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    return _wrap(f"class {node.name}", fields, "")


def _fields(value: type, node: ast.ClassDef) -> list[str]:
    """List the fields as written, a dataclass's with those of the dataclasses it is made from."""
    nodes = [_parse(k) for k in reversed(value.__mro__) if "__dataclass_fields__" in vars(k)]
    parts = [part for n in nodes or [node] for part in n.body if isinstance(part, ast.AnnAssign)]
    found = {ast.unparse(part.target): ast.unparse(part) for part in parts}
    found = {name: "*" if "KW_ONLY" in text else text for name, text in found.items()}
    return [text for text in found.values() if "ClassVar" not in text and text[0] != "_"]


def _function_signature(node: ast.FunctionDef) -> str:
    return _wrap(node.name, _arguments(node), _returns(node))


def _method_signature(node: ast.FunctionDef) -> str:
    if any(ast.unparse(decorator) == "property" for decorator in node.decorator_list):
        return node.name
    names = [argument.partition(":")[0].partition("=")[0] for argument in _arguments(node)]
    return f"{node.name}({', '.join(names)})"


def _arguments(node: ast.FunctionDef) -> list[str]:
    """List the parameters as written, without self; `*` stands where keywords begin."""
    given = node.args
    plain = given.posonlyargs + given.args
    defaults: list[Any] = [None] * (len(plain) - len(given.defaults)) + given.defaults
    result = [_argument(*pair) for pair in zip(plain, defaults, strict=True)]
    if given.vararg:
        result.append("*" + _argument(given.vararg, None))
    elif given.kwonlyargs:
        result.append("*")
    result += [_argument(*p) for p in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        result.append("**" + _argument(given.kwarg, None))
    return result[1:] if plain and plain[0].arg in ("self", "cls") else result


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation).strip(chr(39))}" if argument.annotation else ""
    equals = " = " if kind else "="
    return argument.arg + kind + (f"{equals}{ast.unparse(default)}" if default else "")


def _returns(node: ast.FunctionDef) -> str:
    return f" -> {ast.unparse(node.returns).strip(chr(39))}" if node.returns else ""


def _wrap(name: str, arguments: list[str], returns: str) -> str:
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"


def _constant(value: Any) -> str:
    if isinstance(value, str):
        return "A text."
    kind = type(value).__name__
    article = "An" if kind[0] in "aeiou" else "A"
    if len(value) > 50:
        return f"{article} {kind} of {len(value)} words."
    return f"{article} {kind} with {', '.join(f'`{key}`' for key in value)}."


def _markdown(doc: str) -> str:
    """Turn a numpydoc docstring into Markdown."""
    first, *sections = _SECTION.split(doc)
    parts = [_fence(first.strip())]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            parts.append(f"```python\n{body.strip()}\n```")
        else:
            parts.append(f"*{title}*\n\n{_entries(body)}")
    return "\n\n".join(parts)


def _fence(text: str) -> str:
    """Set a doctest that has no heading apart from the sentences around it."""
    blocks = re.split(r"\n\n", text)
    return "\n\n".join(
        f"```python\n{block}\n```" if block.startswith(">>> ") else block for block in blocks
    )


def _entries(body: str) -> str:
    """Write `name : type` and the indented text below it as a list; sentences as they are."""
    lines = []
    for block in re.split(r"\n(?=\S)", body.strip()):
        head, _, rest = block.partition("\n")
        name, _, kind = head.partition(" : ")
        text = " ".join(rest.split())
        if head.endswith(".") and not text:
            lines.append(f"\n{head}")
        else:
            lines.append(f"- `{name}`{kind and f' ({kind})'}{text and f': {text}'}")
    return "\n".join(lines)


def cli_page() -> str:
    """Show the help of every verb, at a fixed width and without colour."""
    from vdsh.cli import app

    group: Any = typer.main.get_command(app)
    parts = [
        "# Command-line reference",
        _MADE,
        "What `vdsh VERB --help` prints. Data goes to standard output, progress and warnings to "
        "standard error; `--json` prints JSON lines; `-` reads standard input.",
        f"```\n{_help(group, 'vdsh', None)}\n```",
    ]
    parent = group.make_context("vdsh", ["demo", "--help"], resilient_parsing=True)
    parts += _verbs(group, parent)
    return "\n\n".join(parts) + "\n"


def _verbs(group: Any, parent: Any) -> Iterator[str]:
    """Show the help of each verb that is listed, and of those below it."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield f"## {parent.command_path} {name}\n\n```\n{_help(command, name, parent)}\n```"
        if hasattr(command, "commands"):
            inner = command.context_class(command, info_name=name, parent=parent)
            yield from _verbs(command, inner)


def _help(command: Any, name: str, parent: Any) -> str:
    settings = {"terminal_width": _WIDTH, "color": False} | command.context_settings
    context = command.context_class(command, info_name=name, parent=parent, **settings)
    lines = command.get_help(context).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages().items():
        (folder / name).write_text(content, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
