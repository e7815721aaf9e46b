"""Arrays that stay on this process's GPU between runs, where the place is one rank: this process.

What another library has there (CuPy, PyTorch, JAX, Numba) is one of them, used where it lies.
Recorded programs run on them in place; what looks at values here (NumPy, library code) has a copy,
whose bytes are counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.device_arrays import DeviceArray, OnDevice
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.native.device_values import brought, copied, fetched, taken
from avial_lab.runtime.rank import in_place
from avial_lab.runtime.rank.holders import Resident, StepDone, Wanted, new_resident
from avial_lab.runtime.rank.own_ranks import OwnRanks
from avial_lab.runtime.rank.shards import ShardFunction, stepped_alone
from avial_lab.runtime.rank.traces import Ran


@dataclass
class OnGpu:
    """host: the same rank without its GPU. arrays: flat bytes, by number. copied_bytes: between the
    GPU and this process's memory.
    """

    host: OwnRanks
    arrays: dict[int, DeviceArray] = field(default_factory=dict[int, DeviceArray])
    copied_bytes: int = 0

    def new(self, shape: Sequence[int], itemsize: int) -> Resident:
        """An array whose elements are undefined."""
        made = new_resident(shape, itemsize)
        return self._keep(made, taken(made.storage.nbytes))

    def adopt(self, given: DeviceArray) -> Resident:
        """What the caller has on the GPU, which stays there; BindError where that is another's."""
        begin, end = given.address, given.address + given.nbytes
        if any(a.address < end and begin < a.address + a.nbytes for a in self.arrays.values()):
            raise BindError(
                "the array shares memory on a GPU with another one that is used there",
                hint="xp.asarray(x, copy=True) has memory of its own",
            )
        flat = replace(given, shape=(given.nbytes,), dtype=np.dtype(np.uint8))
        return self._keep(new_resident(given.shape, given.dtype.itemsize), flat)

    def copy(self, given: DeviceArray) -> Resident:
        """The same in memory of our own, once it is ready."""
        made = self.new(given.shape, given.dtype.itemsize)
        copied(given, self.arrays[made.number])
        return made

    def put(self, array: np.ndarray, *, whole_on_each: bool = False) -> Resident:
        del whole_on_each  # there is one rank
        made = self.new(array.shape, array.itemsize)
        brought(array, self.arrays[made.number])
        self.copied_bytes += array.nbytes
        return made

    def take(self, resident: Resident, dtype: np.dtype, box: Box) -> np.ndarray:
        """That box: its rows come, and what else of them nobody has asked for."""
        there = self.seen(resident, dtype)
        if there.shape:
            low, high = box.start[0], box.stop[0]
            begin = there.address + low * (there.nbytes // max(there.shape[0], 1))
            there = replace(there, address=begin, shape=(high - low, *there.shape[1:]))
        self.copied_bytes += there.nbytes
        return fetched(there)[(slice(None), *box.slices[1:]) if there.shape else ...].copy()

    def seen(self, resident: Resident, dtype: np.dtype) -> DeviceArray:
        """All of it, where it lies."""
        held = self.arrays[resident.number]
        return replace(held, shape=resident.storage.shape, dtype=dtype)

    def run(self, binary: Binary, arrays: Mapping[str, Resident]) -> Ran:
        """The binary on the arrays of its storages, in place: all of them are on the GPU, or none,
        and then the program is the host's.
        """
        manifest = binary.manifest
        kinds = {buffer.storage: dtype_of_element(buffer.element) for buffer in manifest.buffers}
        seen = {storage: self.seen(each, kinds[storage]) for storage, each in arrays.items()}
        if not manifest.homes:
            return self._run_on_host(binary, seen)
        given = {storage: OnDevice.of(each) for storage, each in seen.items()}
        trace = in_place.run(binary, given)
        self.copied_bytes += sum(copy.nbytes for copy in trace.copies)
        return Ran(trace.moves, lambda: trace)

    def _run_on_host(self, binary: Binary, seen: Mapping[str, DeviceArray]) -> Ran:
        here = {storage: self.host.put(fetched(each)) for storage, each in seen.items()}
        self.copied_bytes += sum(each.nbytes for each in seen.values())
        ran, _ = self.host.run(binary, here)
        for storage in {piece.storage for piece in binary.manifest.results}:
            there = seen[storage]
            values = self.host.take(here[storage], there.dtype, Box.whole(there.shape))
            brought(values, there)
            self.copied_bytes += there.nbytes
        return ran

    def step(
        self,
        function: ShardFunction,
        operands: Sequence[tuple[Resident, np.dtype, Wanted]],
        parameters: Mapping[str, Any],
        results: int,
        *,
        read: tuple[int, Box] | None = None,
        together: bool = True,
    ) -> StepDone:
        """Library code, here, on copies of all of the arrays."""
        del results, read, together
        parts = [
            self.take(resident, dtype, Box.whole(resident.storage.shape))
            for resident, dtype, _ in operands
        ]
        made = stepped_alone(function, parts, parameters)
        return StepDone(tuple((self.put(part), part.dtype) for part in made), 0, 0)

    def taken_bytes(self) -> list[int]:
        return [sum(array.nbytes for array in self.arrays.values())]

    def _keep(self, made: Resident, there: DeviceArray) -> Resident:
        self.arrays[made.number] = there
        weakref.finalize(made, self.arrays.pop, made.number, None)
        made.pieces = (Piece(0, made.storage.name, Box.whole(made.storage.shape)),)
        return made
