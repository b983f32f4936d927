"""Changes a query's text so that no column inside of the query gets another name.

Rules
1. An item that changes gets the name that DuckDB gives it now: its own text of the parse tree.
2. Before and after the change, the SELECTs inside of the query have the same names, by the parse
   trees of both texts. Whether a name is needed is not asked.
3. A name that was not there before can be meant by nothing: the SELECT that got it names no column
   like that.
Where one of these is not sure, the change is not made.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from caudal.duck.trees import parse_tree, plain, tree_text
from caudal.sql.planner.text_checks import Edit, SelectItem, edited
from caudal.sql.quoting import folded, quote

_SELECT = "SELECT "
_Names = tuple[str, ...]


def change(sql: str, edits: Sequence[Edit], items: Sequence[SelectItem]) -> str | None:
    """Return the text after edits, with names for `items`; None if names may have changed."""
    try:
        added, naming = dict[str, str](), list[Edit]()
        for item in items:
            own = _own_name(sql[item.start : item.end])
            if own is not None:
                added |= [own]
                naming.append(Edit(item.end, item.end, f" AS {quote(own[0])}"))
        changed = edited(sql, [*edits, *naming])
        before, after = _tree(sql), _tree(changed)
        if set(_inner_names(before, {})) != set(_inner_names(after, added)):
            return None
        return None if any(_means(node, added) for node in _selects(after)) else changed
    except (duckdb.Error, LookupError, ValueError, RecursionError):
        return None


def _tree(sql: str) -> Any:
    """Return the tree of the one statement of a text. Raise LookupError if it has none."""
    tree = parse_tree(sql)
    (statement,) = tree["statements"] if tree.get("error") is False else [{}]
    return statement["node"]


def _own_name(item: str) -> tuple[str, str] | None:
    """Return what DuckDB calls an item, and the item's tree as `_name` gives it; None if it was
    given a name."""
    node = _tree(_SELECT + item)
    (one,) = node["select_list"]
    if one["alias"]:
        return None
    text = tree_text({"error": False, "statements": [{"node": node}]})
    is_many = any(part.get("class") == "STAR" for part in _nodes(one))  # COLUMNS(...)
    if is_many or not text.startswith(_SELECT):
        raise LookupError(item)
    return text.removeprefix(_SELECT), _name(one, {})


def _inner_names(tree: Any, added: Mapping[str, str]) -> Iterator[_Names]:
    """Yield the names that each SELECT gives its columns, but for those that give the answer's.

    A PIVOT makes names of its aggregates.
    """
    outermost = list(map(id, _outermost(tree)))
    for node in _nodes(tree):
        if node.get("type") == "PIVOT":
            yield tuple(_name(one, added) for one in node.get("aggregates") or ())
        elif "select_list" in node and id(node) not in outermost:
            yield tuple(_name(one, added) for one in node["select_list"])


def _outermost(node: Any) -> Iterator[Any]:
    """Yield the SELECTs whose columns are those of the answer, in this order."""
    if node.get("type") == "SELECT_NODE":
        yield node
    elif node.get("type") == "SET_OPERATION_NODE" and "BY_NAME" not in node["setop_type"]:
        for child in node["children"]:
            yield from _outermost(child)


def _name(item: Any, added: Mapping[str, str]) -> str:
    """Return the name of an item, or its tree if it has none; an added name as the tree before."""
    if item["alias"]:
        return added.get(item["alias"], f"name {item['alias']}")
    return json.dumps(plain(item))


def _selects(tree: Any) -> Iterator[Any]:
    return (node for node in _nodes(tree) if "select_list" in node)


def _means(select: Any, added: Mapping[str, str]) -> bool:
    """Return whether a SELECT may mean a name that was added to it."""
    own = {folded(item["alias"]) for item in select["select_list"] if item["alias"] in added}
    return bool(own) and any(
        own & {folded(name) for name in node["column_names"]}
        for node in _nodes(select)
        if node.get("class") == "COLUMN_REF"
    )


def _nodes(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list):
        for item in tree:
            yield from _nodes(item)
    elif isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
