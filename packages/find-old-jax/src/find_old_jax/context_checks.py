"""Find old code that can't be recognized by name alone: array methods, ambiguous meshes, calls in the wrong context."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from find_old_jax.old_apis import ROWS
from find_old_jax.program import FUNCTIONS, Program
from find_old_jax.replacements import GENERAL_ROW
from find_old_jax.scopes import Located

SHARD_MAPS = {"jax.shard_map", "jax.experimental.shard_map.shard_map"}
JITS = {"jax.jit", "jax.experimental.pjit.pjit"}
MESHES = {"jax.make_mesh", "jax.sharding.Mesh", "jax.experimental.maps.Mesh", "jax.interpreters.pxla.Mesh"}
SPECS = {"jax.P", "jax.sharding.PartitionSpec", "jax.experimental.PartitionSpec", "jax.experimental.pjit.PartitionSpec"}
EXPLICIT = {"jax.reshard", "jax.typeof"} | {
    f"jax.sharding.{name}" for name in ("reshard", "explicit_axes", "auto_axes", "get_abstract_mesh")
}  # a program that uses one of these expects explicit axes
COLLECTIVES = {f"jax.lax.{name}" for name in ("psum", "pmean", "pmax", "pmin", "all_gather", "ppermute", "all_to_all")}

# Maps the text of each old API in appendix 90 to its row's number and to the API.
OLD_APIS = {old_api.text: (number, old_api) for number, row in ROWS.items() for old_api in row.old_apis}

ContextFinding = tuple[int, int, str, str, str, Located]  # line, row, severity, old API, replacement, node


class Use(NamedTuple):
    """A use of an old API, with a severity and a replacement if they differ from those of the API's row."""

    old_api: str
    severity: str = ""
    new: str = ""


class ContextChecks:
    """Find uses of old APIs that only their context reveals, in the JAX version that the program is checked for."""

    def __init__(self, program: Program) -> None:
        self.program, self.dotted, self.value = program, program.dotted, program.value
        scopes = set(program.scopes.values())
        bound = [value for scope in scopes for values in scope.bound.values() for _, value in values]
        self.has_jax = any(isinstance(value, str) and "jax" in value for value in bound)
        calls = [node for node in program.nodes if isinstance(node, ast.Call)]
        self.passed_on: set[ast.AST] = set()  # functions passed to a call that may map them
        self.applied: dict[ast.AST, set[str]] = {}  # the JAX transformations applied to each function
        for call in calls:
            self._apply(call)
        used = {self.dotted(node) for node in program.nodes if isinstance(node, (ast.Name, ast.Attribute))}
        self.uses_explicit_axes = bool({".".join(name.split(".")[:3]) for name in used} & EXPLICIT) or any(
            keyword.arg == "out_sharding" for call in calls for keyword in call.keywords
        )
        self.uses_shard_map = bool(used & SHARD_MAPS)
        self.constrains_shardings = "jax.lax.with_sharding_constraint" in used or any(
            keyword.arg in ("in_shardings", "out_shardings") for call in calls for keyword in call.keywords
        )
        names = [node for node in program.nodes if isinstance(node, (ast.Name, ast.Attribute))]
        map_names = [node for node in names if "map" in (node.id if isinstance(node, ast.Name) else node.attr)]
        self.mentions_map = {f for node in map_names for f in program.ancestors(node) if isinstance(f, FUNCTIONS)}

    def _apply(self, call: ast.Call) -> None:
        name, args = self.dotted(call.func), call.args
        inside = any(
            isinstance(ancestor, FUNCTIONS) for ancestor in self.program.ancestors(call)
        )  # the enclosing function may itself be mapped
        if name not in JITS or inside:
            values = [*args, *(keyword.value for keyword in call.keywords)]
            self.passed_on.update(value for value in map(self.value, values) if isinstance(value, FUNCTIONS))
        if name.startswith("jax.") and args:
            function = self.value(args[0])
            if isinstance(function, FUNCTIONS):
                self.applied.setdefault(function, set()).add(name)

    def findings(self) -> Iterator[ContextFinding]:
        for node in self.program.nodes:
            if node in self.program.guarded or not isinstance(node, (ast.expr, ast.stmt)):
                continue
            for use in self._uses(node):
                row, old_api = OLD_APIS.get(use.old_api, (GENERAL_ROW, None))
                state = old_api.status(self.program.record.version) if old_api else "gone"
                if state != "works":
                    severity = use.severity or ("means something else" if ROWS[row].silent else state)
                    yield node.lineno, row, severity, use.old_api, use.new or ROWS[row].new, node

    def _uses(self, node: ast.expr | ast.stmt) -> Iterator[Use]:
        if isinstance(node, ast.Attribute) and node.attr in ("device_buffer", "device_buffers"):
            yield Use("x.device_buffers")
        elif isinstance(node, ast.Attribute) and node.attr == "vma" and self._call_of(node.value, {"jax.typeof"}):
            yield Use("jax.typeof(x).vma")
        elif isinstance(node, ast.Call):
            yield from self._uses_in_call(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from (Use("with mesh:") for item in node.items if self._is_mesh(item.context_expr))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            sides = [node.left, node.comparators[0]]
            if any(isinstance(side, ast.Tuple) for side in sides) and any(self._is_spec(side) for side in sides):
                yield Use("P(...) == tuple")

    def _uses_in_call(self, node: ast.Call) -> Iterator[Use]:
        name, args = self.dotted(node.func), node.args
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute):
            method, owner = node.func.attr, node.func.value
            if method == "device" and not args and not keywords and self._is_from_jax(owner):
                yield Use("x.device()")
            if method == "compiler_ir" and any(self._text(a) == "mhlo" for a in [*args, *keywords.values()]):
                yield Use("compiler_ir('mhlo')", new="compiler_ir('stablehlo')")
            if method == "compiler_ir" and self._is_method_after_lower(owner, "compile"):
                yield Use("compiler_ir('mhlo')", new="compiled.as_text(), or jax.jit(f).lower(x).compiler_ir()")
            if method == "enter_context" and args and self._is_mesh(args[0]):
                yield Use("with mesh:")
        if name == "jax.sharding.AbstractMesh" and len(args) == 1 and self._is_pairs(args[0]):
            yield Use("AbstractMesh of (name, size) pairs", new="AbstractMesh((8,), ('i',)): sizes, then names")
        without_types = not keywords.keys() & {"axis_types", None} and len(args) < 3
        if (
            name == "jax.make_mesh"
            and without_types
            and not self.uses_explicit_axes
            and ast.Starred not in map(type, args)
        ):
            # The axis types matter only outside shard_map. Even there, a program that uses shard_map may have been
            # written for the current default.
            may_be_intended = self.uses_shard_map and not self.constrains_shardings
            yield Use("make_mesh without axis_types", "could be better" if may_be_intended else "")
        shard_map = self._shard_map_of(node.func)
        if shard_map and args:
            yield from self._reshards(shard_map, args)
        inner = args and self._call_of(args[0], {"jax.pmap"})
        if name == "jax.pmap" and (inner or self._is_transformed_by(node, {"jax.pmap"})):
            yield Use("pmap in pmap")
        if name == "jax.devices" and self._tests_devices(node, args[0] if args else keywords.get("backend")):
            yield Use("jax.devices('gpu') without a GPU", "could be better")
        to_device = name == "jax.device_put" and any(map(self._is_device, [*args[1:2], keywords.get("device")]))
        if to_device and self._is_transformed_by(node, JITS):
            yield Use("device_put in a jit")
        if name == "jax.lax.with_sharding_constraint" and len(args) == 2 and self._is_transformed_by(node, JITS):
            yield from self._constraint(args[1])
        if name in COLLECTIVES and self._is_transformed_by(node, JITS) and not self._may_have_axis(node):
            yield Use("psum over an unbound axis")

    def _constraint(self, sharding: ast.expr) -> Iterator[Use]:
        named = self._call_of(sharding, {"jax.sharding.NamedSharding", "jax.NamedSharding"})
        if named and len(named.args) == 2:
            mesh, spec = named.args[0], self.value(named.args[1])
            if self._is_explicit(mesh) and isinstance(spec, ast.Call):
                names = [arg for arg in spec.args if getattr(arg, "value", arg) is not None]
                yield Use("with_sharding_constraint on an explicit mesh", "gone" if names else "")

    def _shard_map_of(self, called: ast.AST) -> ast.Call | None:
        """Return the `shard_map` call that created a function, even if by a decorator or inside `jit`, or None."""
        called = self.value(called)
        if isinstance(called, FUNCTIONS):
            decorators = [self.value(candidate) for candidate in getattr(called, "decorator_list", [])]
            calls = [candidate for candidate in decorators if isinstance(candidate, ast.Call)]
            return next((candidate for candidate in calls if self._invokes(candidate, "jax.shard_map")), None)
        if not isinstance(called, ast.Call):
            return None
        if self.dotted(called.func) in JITS and len(called.args) == 1 and not called.keywords:
            return self._shard_map_of(called.args[0])
        calls = [called, self.value(called.func)]  # the second is the inner call in partial(jax.shard_map, ...)(f)
        return next(
            (
                candidate
                for candidate in calls
                if isinstance(candidate, ast.Call) and self._invokes(candidate, "jax.shard_map")
            ),
            None,
        )

    def _invokes(self, call: ast.Call, name: str) -> bool:
        """Return whether a call invokes `name`, directly or through `functools.partial`."""
        partial = self.dotted(call.func) == "functools.partial" and call.args
        return self.dotted(call.args[0] if partial else call.func) == name

    def _reshards(self, shard_map: ast.Call, args: list[ast.expr]) -> Iterator[Use]:
        """Report a shard_map on an explicit mesh if the sharding of an argument visibly differs from its in_specs."""
        keywords = {keyword.arg: keyword.value for keyword in shard_map.keywords}
        if "in_specs" not in keywords or "mesh" not in keywords or not self._is_explicit(keywords["mesh"]):
            return
        in_specs = keywords["in_specs"]
        specs = in_specs.elts if isinstance(in_specs, (ast.Tuple, ast.List)) else [in_specs]
        for spec, arg in zip(specs, args):  # noqa: B905  (one spec may apply to all arguments)
            placed = self._call_of(arg, {"jax.device_put"})
            named = placed and len(placed.args) == 2 and self._call_of(placed.args[1], {"jax.sharding.NamedSharding"})
            if named and len(named.args) == 2:
                actual_spec, expected_spec = self._call_of(named.args[1], SPECS), self._call_of(spec, SPECS)
                if actual_spec and expected_spec and ast.dump(actual_spec) != ast.dump(expected_spec):
                    yield Use("in_specs that reshard")

    def _tests_devices(self, node: ast.Call, platform: ast.expr | None) -> bool:
        """Return whether an `if` tests this call's result, as in `if jax.devices("gpu")`, which fails without a GPU."""
        if self._text(platform) in (None, "cpu"):
            return False
        for ancestor in self.program.ancestors(node):
            if isinstance(ancestor, (ast.If, ast.IfExp)):
                return any(inner is node for inner in ast.walk(ancestor.test))
            if isinstance(ancestor, ast.stmt):
                return False
        return False

    def _text(self, node: ast.AST | None) -> str | None:
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

    def _call_of(self, node: ast.AST, names: set[str]) -> ast.Call | None:
        """Return the call that an expression resolves to if the called function is one of `names`, or else None."""
        value = self.value(node)
        return value if isinstance(value, ast.Call) and self.dotted(value.func) in names else None

    def _is_method_after_lower(self, node: ast.AST, name: str) -> bool:
        """Return whether an expression calls method `name` of a lowered function: `jax.jit(f).lower(x).compile()`."""
        value = self.value(node)
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == name:
                inner = self.value(value.func.value)
                return isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") == "lower"
            value = self.value(value.func.value)
        return False

    def _is_pairs(self, node: ast.AST) -> bool:
        value = self.value(node)
        if not isinstance(value, (ast.Tuple, ast.List)):
            return False
        return bool(value.elts) and all(
            isinstance(element, ast.Tuple) and len(element.elts) == 2 for element in value.elts
        )

    def _is_from_jax(self, node: ast.AST, depth: int = 5) -> bool:
        """Return whether an expression is a JAX function's result, or is computed from one, as in `x + 1` or `x[0]`."""
        value = self.value(node)
        if isinstance(value, ast.Call) and self.dotted(value.func).startswith("jax."):
            return True
        if isinstance(value, ast.BinOp):
            operands = [value.left, value.right]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            operands = [value.func.value]
        else:
            operands = [getattr(value, {ast.UnaryOp: "operand", ast.Subscript: "value"}.get(type(value), ""), None)]
        return depth > 0 and any(operand is not None and self._is_from_jax(operand, depth - 1) for operand in operands)

    def _is_mesh(self, node: ast.AST) -> bool:
        """Return whether an expression is a mesh by its value or, if that's unknown (as for a parameter), its name."""
        value = self.value(node)
        if isinstance(value, (ast.Name, ast.Attribute)):
            return self.has_jax and getattr(value, "id", getattr(value, "attr", "")) in ("mesh", "_mesh", "device_mesh")
        return isinstance(value, ast.Call) and self.dotted(value.func) in MESHES

    def _is_explicit(self, node: ast.AST) -> bool:
        value = self.value(node)
        if not isinstance(value, ast.Call) or self.dotted(value.func) not in MESHES:
            return False
        types = [keyword.value for keyword in value.keywords if keyword.arg == "axis_types"]
        if not types and self.dotted(value.func) == "jax.make_mesh" and len(value.args) < 3:
            _, implicit_types = OLD_APIS["make_mesh without axis_types"]
            return implicit_types.status(self.program.record.version) == "gone"
        names = [self.dotted(inner) for types_node in types or value.args[2:3] for inner in ast.walk(types_node)]
        return "jax.sharding.AxisType.Explicit" in names and "jax.sharding.AxisType.Auto" not in names

    def _is_spec(self, node: ast.AST) -> bool:
        value = self.value(node)
        if isinstance(value, ast.Call):
            return self.dotted(value.func) in SPECS
        return isinstance(value, ast.Attribute) and value.attr == "spec" and self._has_jax_or_sharding(value)

    def _has_jax_or_sharding(self, node: ast.Attribute) -> bool:
        return getattr(node.value, "attr", "") == "sharding" or self.has_jax

    def _is_device(self, node: ast.AST | None) -> bool:
        value = self.value(node) if node is not None else None
        if not isinstance(value, ast.Subscript):
            return False
        return self._call_of(value.value, {"jax.devices", "jax.local_devices"}) is not None

    def _may_have_axis(self, node: ast.AST) -> bool:
        """Return whether a named axis may be available to a node.

        An axis may be available if an enclosing function has an unknown decorator, is passed to another function, or
        mentions a name that contains "map".
        """
        enclosing = [function for function in self.program.ancestors(node) if isinstance(function, FUNCTIONS)]
        decorators = {
            self._decorator_name(decorator)
            for function in enclosing
            for decorator in getattr(function, "decorator_list", [])
        }
        only_known = decorators <= {"jit", "pjit", "partial", "value_and_grad", "grad", "checkpoint", "remat"}
        return not only_known or any(
            function in self.mentions_map or function in self.passed_on for function in enclosing
        )

    def _decorator_name(self, decorator: ast.expr) -> str:
        """Return the last part of a decorator's name: 'jit' for `@jax.jit` and for `@partial(jax.jit, ...)`."""
        if isinstance(decorator, ast.Call):
            partial = self.dotted(decorator.func) == "functools.partial" and decorator.args
            return self._decorator_name(decorator.args[0] if partial else decorator.func)
        return self.dotted(decorator).rpartition(".")[2]

    def _is_transformed_by(self, node: ast.AST, transformations: set[str]) -> bool:
        """Return whether one of the transformations is applied to a function that contains the node."""
        for ancestor in self.program.ancestors(node):
            if isinstance(ancestor, FUNCTIONS):
                decorators = getattr(ancestor, "decorator_list", [])
                used = {self.dotted(inner) for decorator in decorators for inner in ast.walk(decorator)}
                if (used | self.applied.get(ancestor, set())) & transformations:
                    return True
        return False
