"""A second opinion on what a shard_map program sends and computes, which owes nothing to the compiler or to its text.

The program's jaxpr is run step by step on every device's own arrays, loops and branches as they really go. What would
cross between devices is moved by NumPy and priced, what would be multiplied is added up. The result must be the
program's own, so nothing was left out. (The compiler may do less than was asked for; the tests' programs leave it no
room to.)
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

PRICES = {  # bytes that one device sends, from the size of its group and its own operand
    "all-reduce": lambda n, b: 2 * (n - 1) / n * b,
    "all-gather": lambda n, b: (n - 1) * b,
    "reduce-scatter": lambda n, b: (n - 1) / n * b,
    "all-to-all": lambda n, b: (n - 1) / n * b,
}
REDUCTIONS = {"psum": np.sum, "psum2": np.sum, "psum_invariant": np.sum, "pmax": np.max, "pmin": np.min}
GATHERS = ("all_gather", "all_gather_invariant")
AS_IT_IS = ("pvary", "pbroadcast", "pcast", "optimization_barrier")


class Opinion:
    """What each device sent, by kind of collective, and computed. `run` gives the program's result."""

    def __init__(self, mesh: Mesh):
        self.names, self.sizes = mesh.axis_names, mesh.devices.shape
        self.everybody = range(math.prod(self.sizes))
        self.sent = {device: Counter() for device in self.everybody}
        self.flops = Counter(dict.fromkeys(self.everybody, 0))
        self.rounds: list[int] = []  # of each while loop that was run, in the order in which they ended

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Of each kind, the most that any device sends."""
        kinds = {kind for sent in self.sent.values() for kind in sent}
        return {kind: round(max(sent[kind] for sent in self.sent.values())) for kind in kinds}

    def run(self, program: Any, *arguments: Any) -> Any:
        """Run a function, most of it one or more shard_maps, on whole arrays."""
        closed, shape = jax.make_jaxpr(program, return_shape=True)(*arguments)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
        whole = self._run(closed.jaxpr, closed.consts, {0: leaves})
        return jax.tree.unflatten(jax.tree.structure(shape), whole[0])

    def _run(self, jaxpr: Any, consts: list, given: dict[int, list]) -> dict[int, list]:
        """The results of a jaxpr on each of the devices in `given`, from its arguments there."""
        place = {device: dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
                 for device, values in given.items()}  # fmt: skip

        def read(device: int, atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else place[device][atom]

        for equation in jaxpr.eqns:
            values = {device: [read(device, atom) for atom in equation.invars] for device in given}
            for device, found in self._step(equation, values).items():
                place[device].update(zip(equation.outvars, found, strict=True))
        return {device: [read(device, atom) for atom in jaxpr.outvars] for device in given}

    def _step(self, equation: Any, values: dict[int, list]) -> dict[int, list]:
        """The results of one equation on each device."""
        name, params = equation.primitive.name, equation.params
        if name == "shard_map":
            return self._shard_map(params, values)
        if name == "scan":
            return self._scan(params, values)
        if name == "while":
            return self._while(params, values)
        if name == "cond":
            return self._cond(params, values)
        inner = params.get("jaxpr") or params.get("call_jaxpr") or params.get("fun_jaxpr")
        if inner is not None:  # jit, checkpoint, custom_jvp_call, ...
            return self._run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", []), values)
        if name in REDUCTIONS or name in GATHERS or name in ("reduce_scatter", "all_to_all", "ppermute"):
            return self._collective(name, params, values)
        if name in AS_IT_IS:
            return values
        if name == "axis_index":
            return {device: [np.int32(self._group(device, params["axis_name"]).index(device))] for device in values}
        if name == "dot_general":
            for device, (left, right) in values.items():
                self.flops[device] += _flops(params["dimension_numbers"], np.asarray(left), np.asarray(right))
        params = {key: None if "sharding" in key else value for key, value in params.items()}
        found = {device: equation.primitive.bind(*operands, **params) for device, operands in values.items()}
        return found if equation.primitive.multiple_results else {device: [value] for device, value in found.items()}

    def _shard_map(self, params: dict, values: dict[int, list]) -> dict[int, list]:
        [whole] = values.values()
        given = {device: [] for device in self.everybody}
        for value, spec in zip(whole, params["in_specs"], strict=True):
            for device in self.everybody:
                given[device].append(value[self._piece(device, spec, value.shape)])
        pieces = self._run(params["jaxpr"], [], given)
        found = []
        for i, spec in enumerate(params["out_specs"]):
            piece = np.asarray(pieces[0][i])
            shape = [n * math.prod(self._size(axis) for axis in _axes(spec, d)) for d, n in enumerate(piece.shape)]
            result = np.zeros(shape, piece.dtype)
            for device in self.everybody:
                result[self._piece(device, spec, shape)] = pieces[device][i]
            found.append(result)
        return {0: found}

    def _scan(self, params: dict, values: dict[int, list]) -> dict[int, list]:
        if "ft_in" in params:  # JAX 0.12
            fixed, carried = (len(list(part)) for part in params["ft_in"].unpack()[:2])
        else:
            fixed, carried = params["num_consts"], params["num_carry"]
        carry = {device: given[fixed : fixed + carried] for device, given in values.items()}
        rounds = range(params["length"])
        stacked = {device: [None] * params["length"] for device in values}
        for i in reversed(rounds) if params["reverse"] else rounds:
            given = {
                device: [*values[device][:fixed], *carry[device], *(x[i] for x in values[device][fixed + carried :])]
                for device in values
            }
            for device, found in self._run(params["jaxpr"].jaxpr, params["jaxpr"].consts, given).items():
                carry[device], stacked[device][i] = found[:carried], found[carried:]
        return {device: [*carry[device], *map(np.stack, zip(*stacked[device], strict=True))] for device in values}

    def _while(self, params: dict, values: dict[int, list]) -> dict[int, list]:
        one, two = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        carry = {device: given[two:] for device, given in values.items()}
        for rounds in itertools.count():
            given = {device: [*values[device][:one], *carry[device]] for device in values}
            go_on = self._run(params["cond_jaxpr"].jaxpr, params["cond_jaxpr"].consts, given)
            goes = {bool(test) for [test] in go_on.values()}
            assert len(goes) == 1, "some devices leave the loop before others"
            if not goes.pop():
                self.rounds.append(rounds)
                return carry
            given = {device: [*values[device][one:two], *carry[device]] for device in values}
            carry = self._run(params["body_jaxpr"].jaxpr, params["body_jaxpr"].consts, given)

    def _cond(self, params: dict, values: dict[int, list]) -> dict[int, list]:
        found = {}
        for i, branch in enumerate(params["branches"]):
            last = len(params["branches"]) - 1
            takers = {device: rest for device, (index, *rest) in values.items() if min(max(int(index), 0), last) == i}
            if takers:
                found |= self._run(branch.jaxpr, branch.consts, takers)
        return {device: found[device] for device in values}

    def _collective(self, name: str, params: dict, values: dict[int, list]) -> dict[int, list]:
        axes = params.get("axes") or params["axis_name"]
        found: dict[int, list] = {}
        for device in values:
            group = self._group(device, axes)
            columns = zip(*(values[member] for member in group), strict=True)  # KeyError if a member is elsewhere
            found[device] = [self._one(name, params, group, device, list(map(np.asarray, c))) for c in columns]
        return found

    def _one(self, name: str, params: dict, group: list[int], device: int, column: list) -> Any:
        """What one device gets of one operand, and what it pays for it."""
        me, n = group.index(device), len(group)
        if name == "ppermute":
            if any(source == me != target for source, target in params["perm"]):
                self.sent[device]["collective-permute"] += column[me].nbytes
            sources = [source for source, target in params["perm"] if target == me]
            return column[sources[0]] if sources else np.zeros_like(column[me])
        if name in REDUCTIONS:
            kind, result = "all-reduce", REDUCTIONS[name](np.stack(column), axis=0)
        elif name in GATHERS:
            kind, join = "all-gather", np.concatenate if params["tiled"] else np.stack
            result = join(column, params["all_gather_dimension"])
        elif name == "reduce_scatter":
            kind, pieces = "reduce-scatter", np.split(np.sum(column, axis=0), n, params["scatter_dimension"])
            result = pieces[me] if params["tiled"] else pieces[me].squeeze(params["scatter_dimension"])
        else:
            assert params["tiled"], "all_to_all of another form"
            kind, pieces = "all-to-all", [np.split(operand, n, params["split_axis"])[me] for operand in column]
            result = np.concatenate(pieces, params["concat_axis"])
        if n > 1:
            self.sent[device][kind] += PRICES[kind](n, column[me].nbytes)
        return result.astype(column[me].dtype)

    def _group(self, device: int, axes: Any) -> list[int]:
        """The devices that differ from this one along these axes only, the last axis the fastest."""
        axes = axes if isinstance(axes, (tuple, list)) else (axes,)
        mine = np.unravel_index(device, self.sizes)
        places = [self.names.index(axis) for axis in axes]
        members = []
        for choice in np.ndindex(*(self.sizes[place] for place in places)):
            there = list(mine)
            for place, coordinate in zip(places, choice, strict=True):
                there[place] = coordinate
            members.append(int(np.ravel_multi_index(there, self.sizes)))
        return members

    def _size(self, axis: str) -> int:
        return self.sizes[self.names.index(axis)]

    def _piece(self, device: int, spec: Any, shape: Any) -> tuple[slice, ...]:
        """Where a device's part of an array of this shape lies."""
        found = []
        for d, length in enumerate(shape):
            group = self._group(device, _axes(spec, d))
            size = length // len(group)
            found.append(slice(group.index(device) * size, (group.index(device) + 1) * size))
        return tuple(found)


def _axes(spec: Any, dimension: int) -> tuple[str, ...]:
    """The mesh axes that cut a dimension, of a PartitionSpec."""
    found = spec[dimension] if dimension < len(spec) else None
    return () if found is None else found if isinstance(found, tuple) else (found,)


def _flops(numbers: Any, left: np.ndarray, right: np.ndarray) -> int:
    """2 for each multiplication and addition, 8 of complex numbers; none for products of vectors, as `cost` has it."""
    (contracting, _), (batch, _) = numbers
    inner = math.prod(left.shape[d] for d in contracting)
    rows, columns = left.size // inner, right.size // inner  # each times the batch
    together = math.prod(left.shape[d] for d in batch)
    if left.ndim == right.ndim == len(contracting) + len(batch):
        return 0
    return (8 if np.iscomplexobj(left) else 2) * rows * columns // together * inner
