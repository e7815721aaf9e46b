"""Names of the attributes that passes write and later passes read."""

from __future__ import annotations

CHOSEN = "avial.expand"
"""On an operation of `math`: it becomes code, in which products and sums are `fused` or `apart`."""

NEAR = "avial.near"
"""On a marked operation: its argument is within the limit, which somebody has asked before."""

MARKED = "avial.functions"
"""On a module whose functions are chosen. What passes move into loops or out of them stays."""

SPLIT_DIMENSIONS = 2
AS_WRITTEN = "avial.as_written"
"""On a task, and on its function: its body is as a person wrote it, not in the normal form of
loops.
"""

OF_TASK = "avial.task"
"""On a function: the name of the task whose body it is."""

DIVIDED = "avial.divided"
"""On a loop over parts that ranks have: it is the one to divide, however few there are. As text:
how ("cyclic 4", "2x3": the loop in it, too).
"""

WHERE_IT_LIES = "avial.where_it_lies"
"""On a nest that is not divided, also in a loop around: each time the rank runs it that has most of
what it reads.
"""

LIES = "avial.lies"
"""On an argument of a function: the dimension by which its parts lie on the ranks before a run; -1
where each has all of it.
"""

SPLIT = "avial.split"
"""On a loop: its iterations are divided, along this dimension (0 or 1) of the grid of ranks."""

LEAN = "avial.lean"
"""On a split loop in a loop over time: the iterations before the part and after it that are run too
in the first step, and by how many these are fewer with every step.
"""

HALO = "avial.halo"
"""On a replicate with such loops: the most iterations that any of them runs before and after."""

PLACES = "avial.places"
"""On a phase that runs on devices: the numbers of their memories."""

TOUCHES = "avial.touches"
"""On a task for a device, and its call: the numbers of the arrays of which it touches anything."""

COPIES = "avial.copies"
"""On a function of tasks: for each copy to or from a device both places, the number of the array,
and the box.
"""

LAUNCH = "avial.launch"
"""On a call that a device is to make: of each operand the number of the array, -1 for a number."""

KERNEL = "avial.kernel"
"""On a function: what one thread of a kernel does, with the threads of a block in x, y and z; 0
where that is known at run time only. Its last six arguments are the numbers of the block and of the
thread in it.
"""

BLOCKS = "avial.blocks"
"""On such a function: in words how many blocks there are in x, y and z."""

LAUNCHES = "avial.launches"
"""On such a function: how often one call of its launcher launches it, where that is not once."""

QUEUED = "avial.queued"
"""On a call of a kernel's grid: the kernel's name. The last three operands are its blocks; of a
launch that a text writes they are its blocks, its threads, and the bytes that these share.
"""

LAUNCH_SIZES = 7
"""So many; they are on a call with the next attribute."""

WRITTEN = "avial.written"
"""On a call of the grid of a launch that a text writes."""

NOT_EMULATED = "avial.not_emulated"
"""On the grid of a kernel that only a real device runs: why, for people."""

LAUNCHER = "avial.launcher"
"""On a function that a device runs: it only computes grids, and puts kernels into a queue."""

ON_DEVICE = "avial.on_device"
"""On a kernel that only devices run: emulated ones have the launch that it was made of."""

CHIP = "avial.chip"
"""On a kernel: the compute capability that its task asks for."""

WORKGROUP = "avial.workgroup"
"""On memory that such a kernel takes: all threads of a block have it together."""

NO_KERNEL = "avial.no_kernel"
"""On a function that a device is to run and has no kernel for: why, for people."""

ALONE = "avial.alone"
"""On a schedule: why one of several ranks runs all of it."""

SYNC = "avial.sync"
"""On a schedule of phases: `levels` where all ranks wait for each other after each level."""

LEVEL = "avial.level"
"""On a phase, then: its level among its neighbours. Without one, as what several phases became, it
is a level of its own.
"""

ROLLED = "avial.rolled"
"""On a loop: as short as it is, copies of its body would be more of a burden than a help."""

INDEPENDENT = "avial.independent"

PARALLEL = "avial.parallel"
"""On a loop: its iterations may run at the same time, in any order."""

SLICED = "avial.sliced"
"""On a loop whose iterations depend on each other, but only within a column: the marked loops
inside may be cut into slices, and each slice may go through all iterations beside the others.

    for i, for j:  y[j] += A[i, j] * x[i]        columns j
"""

DECLARED = ("affine.parallel", "scf.parallel")

ORDERED = "avial.ordered"
"""On loops whose order a pass has chosen already."""

NO_ALIAS = "avial.no_alias"
SHARED = "avial.shared"
"""On a function that the loop passes leave as it is: one that a pass wrote for several places to
call, or the body of a task that stays as it is written.
"""

PART = ".part"
"""After a phase's name, in those of the functions that threads call."""

STREAMED = "avial.streamed"
"""On a store: what it writes is not to be in the caches."""

SAFELEN = "avial.safelen"
"""On a loop: so many iterations after each other may be one vector (OpenMP's `safelen`)."""

PHASES = ("avial.replicate", "avial.task")
FUSED = "avial.fused"
"""On a task: the phases that it was, by name."""

IFS = ("scf.if", "affine.if")

UPDATES = "avial.updates"
"""On a sum in a program on tensors: the number of that operand which is the element that it is
stored to. Two ways to memory (a run's, in place, and the reference's copies) tell it no more.
"""

ON = "avial.on"
"""On a module: the family of devices that its divided loops run on, whatever their text says."""

CONTRACTED = "avial.contracted"
"""On a module whose products are contracted, or (false) are to stay as they are. In either case
what passes bring side by side later is not.
"""

ON_RANK = "avial.on_rank"
"""On a task: the rank that runs it, whatever a policy would say; ranks keep the order of tasks."""

SUMMED = "avial.summed"
"""On a task that adds up partial results: the terms of each sum, whose order is another now."""

TURN = "avial.turn"
"""On a task of a pipeline: its micro-batch, its stage, and its way (`planning.foreseen.Way`)."""

PIPELINE = "avial.pipeline"
"""On a function on meshes with turns: the order in which devices take these; the most in
flight, and the devices that have several stages each, where that is said.
"""

FOLLOWS = "avial.follows"
"""On a function: for each result the number of the argument in whose place it comes, or -1."""

KEPT = "avial.kept"
"""On a function on meshes: the results that every device keeps, which holds a copy."""

WEIGHTS = "avial.weights"
"""On such a function: the numbers of those arguments that follow gradients; others that results
come in place of are what an optimizer keeps.
"""

GRADIENT_OF = "avial.gradient_of"
"""On a move that adds up a gradient: the name of the weight."""

OVERLAP = "avial.overlap"
"""On a function on meshes: sums of so many bytes of partial results begin as soon as these are
there, and are waited for while something else is computed.
"""

REPEATED = "avial.repeated"
"""On an operation on placed tensors: nobody keeps its value, who reads it computes it."""

SUMMED_BY = "avial.summed_by"
"""On a move that adds parts up: by a ring, a tree or doubling, for each axis that it sums over."""

TOLD = "avial.told"
"""On a function on meshes: what transforms say of what they did."""

IN_PLACE = "avial.in_place"
"""On a move that adds parts up: its sums lie where their parts lay."""

DIVIDED = "avial.divided"
"""On a module of placed tensors that are tasks now: what moves and what devices hold, in lines."""
