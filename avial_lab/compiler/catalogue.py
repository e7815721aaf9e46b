"""The catalogue of passes: which there are, in which order each stage runs them, and why so.

One row a pass, from the program as it was read down to LLVM's dialect; MLIR's own passes stand in
it by their names. Read it from top to bottom, or print it: `avial-lab passes`. What a pass does to
the IR, with the text before and after, says its class: `avial-lab passes jam-for-stores`.

A new pass is a module of its name in `passes/` and a row here: the command lines, `--without`, what
tuning tries and the documentation follow. The classes are loaded when they are asked for: nothing
here loads MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from avial_lab.compiler.pass_rows import Pipeline, Row, Size

# -- from the text to tasks ------------------------------------------------------------------------

ARITHMETIC = Pipeline(
    "source",
    "which arithmetic it is; in a run as in the reference",
    (
        Row(
            "strict-arithmetic",
            what="Marks the module: every operation is rounded on its own, in the text's order.",
            why="Before all passes that read the mark and then leave sums and products as they "
            "are (align-reductions, merge-split-reductions, reassociate-sums, "
            "privatise-array-sums, privatise-scalar-sums …).",
            at="avial_lab.compiler.passes.arithmetic.strict_arithmetic:StrictArithmetic",
            when="strict",
        ),
        Row(
            "contract-fma",
            what="Products that are only added to something are rounded once, with the sum.",
            why="Before anything moves: what is fused is decided in the text, so that any number "
            "of ranks and threads and the reference compute the same bits.",
            at="avial_lab.compiler.passes.arithmetic.contract_fma:ContractFma",
            when="not strict, on a machine with an instruction for it",
        ),
        Row(
            "select-math",
            what="Chooses the elementary functions that are computed by code of ours, not libm.",
            why="Before anything moves, for the same reason; until expand-math they stay single "
            "operations, which the analyses understand.",
            at="avial_lab.compiler.passes.arithmetic.select_math:SelectMath",
            when="not strict",
        ),
    ),
)

PLAIN = Pipeline(
    "avial",
    "a plain function as tasks; at stage loops the body of a task, by normalise-tasks",
    (
        Row(
            "lift-cf-to-scf",
            what="Jumps between blocks become loops and branches.",
            why="First: all that follows looks at loops, not at jumps.",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Before canonicalize, which in MLIR 22 ends the process at a loop inside of one.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "unroll-short",
            what="Writes out loops over a few neighbours, as stencils with weights have them.",
            why="Before the program is divided: fuse-phases asks already at stage placed for "
            "tiles over time, which are made of plain nests only.",
            at="avial_lab.compiler.passes.loops.order.unroll_short:UnrollShort",
        ),
        Row(
            "canonicalize",
            what="Folds constants and drops what is not used.",
            why="After unroll-short, whose copies it folds; the analyses then meet numbers where "
            "the text had arithmetic.",
        ),
        Row(
            "cse",
            what="Computes what is computed twice once.",
            why="After canonicalize, which makes more values equal.",
        ),
        Row(
            "normalise",
            what="Calls, linear algebra and loops of any dialect become affine loops over memory.",
            why="Before every analysis: they read accesses of memory in loops, and nothing else.",
            at="avial_lab.compiler.passes.tasks.normalise:Normalise",
        ),
        Row(
            "check-accesses",
            what="Refuses accesses that are certain to leave their array.",
            why="As soon as accesses can be read, and before loops are taken apart, so that the "
            "message is about the access and the loops of the text.",
            at="avial_lab.compiler.passes.tasks.check_accesses:CheckAccesses",
            when="a function",
        ),
        Row(
            "distribute-loops",
            what="Takes loops that do several things apart where a part can be divided then.",
            why="Before drop-in divides loops. It looks at loops that cannot be divided yet, as "
            "do the two below; it leaves the iterations as they are, so it is tried first.",
            at="avial_lab.compiler.passes.tasks.distribute_loops:DistributeLoops",
        ),
        Row(
            "privatise-scratch",
            what="Gives each iteration its own copy of an array that they only scratch on.",
            why="For loops that distribute-loops could not help: it costs memory and a copy.",
            at="avial_lab.compiler.passes.tasks.privatise_scratch:PrivatiseScratch",
        ),
        Row(
            "split-index-sets",
            what="Cuts loops at the one iteration that keeps the others from being divided.",
            why="For loops that neither of the two above could help: it makes three of one.",
            at="avial_lab.compiler.passes.tasks.split_index_sets:SplitIndexSets",
        ),
        Row(
            "drop-in",
            what="Puts parallel nests into replicates, sequential loops around them into "
            "converges, and the rest into tasks.",
            why="Last: what it wraps is divided as it stands.",
            at="avial_lab.compiler.passes.tasks.drop_in:DropIn",
            when="a function",
        ),
    ),
)

NORMALISE = Pipeline(
    "avial",
    "what normalise runs",
    (
        Row(
            "inline-calls",
            what="Writes calls of the module's own functions out.",
            why="First: what stands behind a call goes through all steps below where it is used.",
            at="avial_lab.compiler.passes.tasks.inline_calls:InlineCalls",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Again: inlined bodies may have some, and canonicalize comes next.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "one-shot-bufferize",
            what="Tensors become memory.",
            why="Before linear algebra becomes loops: those on memory are what is analysed.",
        ),
        Row(
            "canonicalize",
            what="Folds constants and drops what is not used.",
            why="Sizes of inlined windows become numbers, and windows that leave their array are "
            "refused, before linalg-to-loops asks how large they are.",
        ),
        Row(
            "linalg-generalize-named-ops",
            what="Named operations of linear algebra become generic ones.",
            why="Before parallel-first, which reorders the iterators of generic ones.",
        ),
        Row(
            "keep-places",
            what="What a named operation became stands at that operation's place in the cell.",
            why="Right after linalg-generalize-named-ops, which forgets places.",
            at="avial_lab.compiler.passes.tasks.normalise:KeepPlaces",
        ),
        Row(
            "parallel-first",
            what="Moves parallel iterators of linear algebra outside of its reductions.",
            why="While iterators have an order of their own: linalg-to-loops writes it down.",
            at="avial_lab.compiler.passes.tasks.parallel_first:ParallelFirst",
        ),
        Row(
            "linalg-to-loops",
            what="Linear algebra becomes affine loops, or scf loops for windows cut in loops.",
            why="Once its iterators are in the order that its loops are to have.",
            at="avial_lab.compiler.passes.tasks.normalise:LinalgToLoops",
        ),
        Row(
            "only-loops",
            what="Refuses tensors and linear algebra that are left.",
            why="After the last pass that makes loops of them.",
            at="avial_lab.compiler.passes.tasks.normalise:OnlyLoops",
        ),
        Row(
            "copies-to-loops",
            what="memref.copy becomes loops over elements.",
            why="After one-shot-bufferize and inlining, which bring copies in; the analyses read "
            "loads and stores.",
            at="avial_lab.compiler.passes.host.copies_to_loops:CopiesToLoops",
        ),
        Row(
            "constant-globals",
            what="Tables that have values and that nobody writes are constants.",
            why="After all uses are loads and stores, which alone it knows as reading or writing.",
            at="avial_lab.compiler.passes.tasks.normalise:ConstantGlobals",
        ),
        Row(
            "scf-forall-to-parallel",
            what="scf.forall becomes scf.parallel.",
            why="Before the steps below, which know scf.parallel.",
        ),
        Row(
            "index-loops",
            what="Loops count in index, in place of their language's integers.",
            why="Before raise-to-affine: affine loops count in index. The casts it puts in are "
            "folded right below.",
            at="avial_lab.compiler.passes.tasks.index_loops:IndexLoops",
        ),
        Row(
            "canonicalize",
            what="Folds constants and drops what is not used.",
            why="After the steps that wrote loops, bounds and casts.",
        ),
        Row(
            "cse",
            what="Computes what is computed twice once.",
            why="After canonicalize, which makes more values equal.",
        ),
        Row(
            "mem2reg",
            what="Variables of one element that need no memory become values.",
            why="Before the two steps below, so that only what has to be memory is.",
        ),
        Row(
            "place-allocations",
            what="Sinks scratch memory into the parallel loops that use it, and hoists what "
            "sequential loops allocate again and again.",
            why="After mem2reg, so that it moves only what is memory for good.",
            at="avial_lab.compiler.passes.tasks.place_allocations:PlaceAllocations",
        ),
        Row(
            "iter-args-to-memory",
            what="Values that loops at control level hand on live in memory: ranks exchange that.",
            why="After mem2reg, which makes loops hand on what was a variable in memory.",
            at="avial_lab.compiler.passes.tasks.iter_args_to_memory:IterArgsToMemory",
        ),
        Row(
            "raise-to-affine",
            what="Loops and accesses of other dialects become affine where they can.",
            why="After iter-args-to-memory: a value that is read from memory by now cannot be a "
            "bound or a subscript of affine operations.",
            at="avial_lab.compiler.passes.tasks.raise_to_affine:RaiseToAffine",
        ),
        Row(
            "canonicalize",
            what="Folds constants and drops what is not used.",
            why="Last: folds the maps that raise-to-affine wrote.",
        ),
    ),
)

WHOLE = Pipeline(
    "avial",
    "a plain function that cannot be divided",
    (
        Row(
            "lift-cf-to-scf",
            what="Jumps between blocks become loops and branches.",
            why="Before one-task: the body of a task is one block.",
        ),
        Row(
            "one-task",
            what="Puts the whole function into one task.",
            why="In place of all that divides it.",
            at="avial_lab.compiler.passes.tasks.one_task:OneTask",
        ),
    ),
)

WRITTEN = Pipeline(
    "avial",
    "replicates and converges as people write them",
    (
        Row(
            "converge-to-loops",
            what="A converge that counts or watches a buffer becomes the loop it stands for.",
            why="Before the lowering, which knows loops; complete-replicates looks at each "
            "replicate by itself, so either may come first.",
            at="avial_lab.compiler.passes.tasks.converge_to_loops:ConvergeToLoops",
        ),
        Row(
            "complete-replicates",
            what="Finds the loop that a replicate divides, and proves that it may.",
            why="Before place-phases, which divides the loop that it finds.",
            at="avial_lab.compiler.passes.tasks.complete_replicates:CompleteReplicates",
        ),
    ),
)

# -- placed ----------------------------------------------------------------------------------------

PLACE_TASKS = Pipeline(
    "placed",
    "tasks that somebody wrote",
    (
        Row(
            "place-tasks",
            what="Writes the schedule onto the tasks: rank, device, order, messages.",
            why="By itself: it moves nothing, and tasks-to-mpi reads what it writes.",
            at="avial_lab.compiler.passes.placement.place_tasks:PlaceTasks",
            by_name="avial_lab.compiler.passes.placement.place_tasks:PlaceTasksHere",
        ),
    ),
)

PLACE_PHASES = Pipeline(
    "placed",
    "loops that are divided: who takes part",
    (
        Row(
            "place-phases",
            what="Writes onto each phase which ranks may run it, and how it is divided.",
            why="First: the passes below ask on how many ranks a phase runs.",
            at="avial_lab.compiler.passes.placement.place_phases:PlacePhases",
            by_name="avial_lab.compiler.passes.placement.place_phases:PlacePhasesHere",
        ),
    ),
)

GROUP_PHASES = Pipeline(
    "placed",
    "loops that are divided: what is one phase",
    (
        Row(
            "align-reductions",
            what="Divides sums over columns by the rows that a rank has already, with partial "
            "sums where that takes less time.",
            why="First of these: keep-on-one would leave such programs to one rank without it.",
            at="avial_lab.compiler.passes.placement.align_reductions:AlignReductions",
            optional=True,
            when="several ranks, a plain function, no division asked for",
        ),
        Row(
            "keep-on-one",
            what="Leaves a program to one of several ranks where messages take longer than the "
            "work that they save.",
            why="Before the three below, which treat such a program as one of a single rank.",
            at="avial_lab.compiler.passes.placement.keep_on_one:KeepOnOne",
            optional=True,
            when="several ranks, a plain function, no division asked for",
        ),
        Row(
            "widen-halos",
            what="Exchanges wider halos of stencils once in several steps of time.",
            why="Before fuse-phases, which leaves phases with a wide halo as they are.",
            at="avial_lab.compiler.passes.placement.widen_halos:WidenHalos",
            optional=True,
            sizes={"steps": Size("steps of time between two exchanges of halos", 1, 1 << 12)},
            when="several ranks",
        ),
        Row(
            "fuse-phases",
            what="Makes one task of the phases in a loop over time, where that loop can be tiled "
            "or blocked, or where they are short.",
            why="Before join-phases, which leaves phases alone that are several already.",
            at="avial_lab.compiler.passes.placement.fuse_phases:FusePhases",
            optional=True,
            when="one rank; on several, a plain function with no division asked for",
        ),
        Row(
            "join-phases",
            what="Makes one task of phases that go over the same array, which is then read once.",
            why="Last: of what is a phase by then.",
            at="avial_lab.compiler.passes.placement.join_phases:JoinPhases",
            optional=True,
            when="one rank; on several, a plain function with no division asked for",
        ),
    ),
)

# -- mpi -------------------------------------------------------------------------------------------

TASKS_TO_MPI = Pipeline(
    "mpi",
    "tasks: every rank finds its own block of steps",
    (
        Row(
            "tasks-to-mpi",
            what="Tasks become functions; the schedule becomes steps, sends and receives.",
            why="After place-tasks, whose decisions it carries out.",
            at="avial_lab.compiler.passes.distribution.tasks_to_mpi:TasksToMpi",
        ),
    ),
)

PHASES_TO_MPI = Pipeline(
    "mpi",
    "phases: every rank runs the control flow and its part of each nest",
    (
        Row(
            "emulate-gpu",
            what="GPU kernels become loops over blocks and threads.",
            why="Before replicate-to-mpi, which makes functions of the loops of a phase.",
            at="avial_lab.compiler.passes.host.emulate_gpu:EmulateGpu",
        ),
        Row(
            "replicate-to-mpi",
            what="Phases become functions; the entry calls the ownership runtime around them.",
            why="Last: the avial dialect is gone behind it.",
            at="avial_lab.compiler.passes.distribution.replicate_to_mpi:ReplicateToMpi",
        ),
    ),
)

# -- loops -----------------------------------------------------------------------------------------

_CACHE = Size("bytes of the cache that tiles are cut for", 1 << 10, 1 << 32)

LOOPS = Pipeline(
    "loops",
    "a rank's loops, optimised",
    (
        Row(
            "no-alias",
            what="Marks functions whose arrays share no memory.",
            why="First: the passes below work on functions with this mark.",
            at="avial_lab.compiler.passes.loops.facts.no_alias:NoAlias",
        ),
        Row(
            "normalise-tasks",
            what="Brings the bodies of tasks into the form that the loops of phases have by now.",
            why="After no-alias, whose mark it asks for; before all that works on loops.",
            at="avial_lab.compiler.passes.tasks.normalise_tasks:NormaliseTasks",
            optional=True,
            sizes={"least": Size("iterations of a body from which on it is", 1, 1 << 30)},
        ),
        Row(
            "split-wraparound",
            what="Cuts innermost loops where a subscript goes round the end of an array.",
            why="Before all that reads subscripts: one with a remainder is not affine, and what "
            "stands between two cuts is.",
            at="avial_lab.compiler.passes.loops.order.split_wraparound:SplitWraparound",
            optional=True,
        ),
        Row(
            "unroll-reductions",
            what="Writes out sums of a few terms, so that the loop over elements is innermost.",
            why="Before expand-scalars, which would put such a sum into a row of memory; what "
            "block-contractions makes blocks of it leaves alone.",
            at="avial_lab.compiler.passes.loops.order.unroll_reductions:UnrollReductions",
            optional=True,
            when="not with blas, which takes small products too",
        ),
        Row(
            "expand-scalars",
            what="Gives values that loops carry an element for each iteration, where that lets "
            "loops be put into a better order or makes a contraction.",
            why="Before block-contractions and interchange-loops, for whose sake it does so.",
            at="avial_lab.compiler.passes.loops.storage.expand_scalars:ExpandScalars",
            optional=True,
        ),
        Row(
            "merge-split-reductions",
            what="Makes one sum of a triangle's and its mirror image's.",
            why="After expand-scalars, which gives the pieces elements of an array; before "
            "block-contractions, which then finds one contraction of a rectangle.",
            at="avial_lab.compiler.passes.loops.contractions.merge_split_reductions:MergeSplitReductions",
            optional=True,
            when="with block-contractions; neither strict (another order) nor with blas (which "
            "takes no matrix that is mirrored as it is read)",
        ),
        Row(
            "expand-arrays",
            what="Gives scratch arrays that a loop makes anew a row for each of its iterations.",
            why="Before block-contractions, which then finds a contraction of all the iterations.",
            at="avial_lab.compiler.passes.loops.storage.expand_arrays:ExpandArrays",
            optional=True,
            when="with block-contractions",
        ),
        Row(
            "block-contractions",
            what="Writes contractions as packed panels and register tiles, factorisations in "
            "blocks of steps.",
            why="Before interchange-loops and fuse-loops: blocks gain more than any order of the "
            "loops. What it wrote is marked, and the passes below leave that as it is.",
            at="avial_lab.compiler.passes.loops.contractions.block_contractions:BlockContractions",
            optional=True,
            sizes={
                "terms": Size("terms of a sum in one block", 1, 1 << 16),
                "block": Size("rows in one block", 8, 1 << 13, multiple=8),
                "steps": Size("steps of a factorisation in one block", 16, 1 << 12),
            },
        ),
        Row(
            "block-triangular-solves",
            what="Solves triangular systems in blocks of rows, which threads share.",
            why="After block-contractions, whose own loops are marked and left alone; before "
            "interchange-loops, for which it marks its loops as ordered.",
            at="avial_lab.compiler.passes.loops.contractions.block_triangular_solves:BlockTriangularSolves",
            optional=True,
            sizes={"rows": Size("rows in one block", 8, 1 << 13, multiple=8)},
        ),
        Row(
            "interchange-loops",
            what="Exchanges and splits loops so that the innermost walks along memory.",
            why="After block-contractions and block-triangular-solves, which have the first "
            "choice of nests; before all that is about the innermost loop.",
            at="avial_lab.compiler.passes.loops.order.interchange_loops:InterchangeLoops",
            optional=True,
        ),
        Row(
            "fuse-loops",
            what="Makes one of nests that go over the same elements, which are loaded once.",
            why="After interchange-loops: it fuses loops that have the same order; before promote- "
            "scalars, whose loops hand values on, and are not fused.",
            at="avial_lab.compiler.passes.loops.order.fuse_loops:FuseLoops",
            optional=True,
        ),
        Row(
            "tile-time",
            what="Takes several steps of time on a part of the arrays while a cache holds it.",
            why="After interchange-loops: it keeps the loops inside of its tiles as they are, and "
            "marks the tiles, so that nobody below changes those.",
            at="avial_lab.compiler.passes.loops.order.tile_time:TileTime",
            optional=True,
            sizes={
                "l1": _CACHE,
                "l2": _CACHE,
                "widths": Size(
                    "slabs (and lines) along each face of a tile", 1, 1 << 16, numbers=(2, 3)
                ),
            },
        ),
        Row(
            "coalesce-reductions",
            what="Makes one loop of rows and columns that are added to the same elements.",
            why="Before promote-scalars and reassociate-sums, which look at the innermost loop: "
            "that is the long one then.",
            at="avial_lab.compiler.passes.loops.order.coalesce_loops:CoalesceReductions",
            optional=True,
        ),
        Row(
            "promote-scalars",
            what="Keeps elements that an innermost loop meets in every iteration in registers.",
            why="Once loops are in their last order; before reassociate-sums and independent- "
            "accesses, to which such an element would be a dependence through memory.",
            at="avial_lab.compiler.passes.loops.storage.promote_scalars:PromoteScalars",
            optional=True,
        ),
        Row(
            "reassociate-sums",
            what="Lets LLVM add up the terms of an innermost loop in vectors.",
            why="After promote-scalars, which leaves the sum a value that the loop hands on; "
            "before privatise-array-sums, privatise-scalar-sums and mark-parallel, into whose "
            "loops it does not look.",
            at="avial_lab.compiler.passes.loops.reductions.reassociate_sums:ReassociateSums",
            optional=True,
        ),
        Row(
            "independent-accesses",
            what="Marks innermost loops whose iterations touch no memory that another writes.",
            why="After the passes that change what an innermost loop loads and stores; before "
            "privatise-array-sums, privatise-scalar-sums and mark-parallel, into whose loops it "
            "does not look.",
            at="avial_lab.compiler.passes.loops.facts.independent_accesses:IndependentAccesses",
            optional=True,
        ),
        Row(
            "privatise-array-sums",
            what="Adds rows up in parts, each for a thread, where all add to the same sums.",
            why="Before mark-parallel, which finds such loops in order; it marks those it cut "
            "itself.",
            at="avial_lab.compiler.passes.loops.reductions.privatise_array_sums:PrivatiseArraySums",
            optional=True,
        ),
        Row(
            "privatise-scalar-sums",
            what="Adds up a long sum, or looks for an extreme, in parts, each for a thread.",
            why="After privatise-array-sums, which has its way with rows first; before "
            "mark-parallel, for the same reason.",
            at="avial_lab.compiler.passes.loops.reductions.privatise_scalar_sums:PrivatiseScalarSums",
            optional=True,
        ),
        Row(
            "mark-parallel",
            what="Marks the outermost loops whose iterations may run at the same time.",
            why="After the passes that mark loops of their own, which it leaves alone; before "
            "those that ask for the mark: jam-in-registers to thread-loops.",
            at="avial_lab.compiler.passes.loops.facts.mark_parallel:MarkParallel",
        ),
        Row(
            "jam-in-registers",
            what="Keeps short rows of sums in registers, several of them at once.",
            why="Before jam-for-stores, which would have such rows loaded and stored once in a few "
            "terms.",
            at="avial_lab.compiler.passes.loops.jam.jam_in_registers:JamInRegisters",
            optional=True,
        ),
        Row(
            "jam-for-stores",
            what="Runs rows that add to the same sums several at a time.",
            why="Before vectorise-outer and jam-for-latency, which then meet what is left; "
            "before thread-loops, behind which nobody knows how many rows there are.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_stores:JamForStores",
            optional=True,
            sizes={"rows": Size("rows at once", 2, 16)},
        ),
        Row(
            "vectorise-outer",
            what="Makes lanes of vectors of a parallel loop around one that hands values on.",
            why="Before jam-for-latency, which takes those rows that cannot be lanes.",
            at="avial_lab.compiler.passes.loops.vectors.vectorise_outer:VectoriseOuter",
            optional=True,
            sizes={"lanes": Size("iterations in the lanes of vectors", 2, 64)},
        ),
        Row(
            "jam-for-latency",
            what="Runs rows that each wait for themselves side by side.",
            why="After vectorise-outer; before thread-loops, which takes the mark away that says "
            "that rows need no lag.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_latency:JamForLatency",
            optional=True,
            sizes={"rows": Size("rows side by side", 2, 64)},
        ),
        Row(
            "vectorise-extremes",
            what="Looks for the least or the greatest of a row in vectors.",
            why="After the passes that run rows together: it takes what innermost loops they "
            "left, and what it writes is no loop to them.",
            at="avial_lab.compiler.passes.loops.reductions.vectorise_extremes:VectoriseExtremes",
            optional=True,
        ),
        Row(
            "transpose-in-registers",
            what="Turns squares in registers where arrays lie across each other.",
            why="Before thread-loops, which takes the mark of the loop over rows away; before "
            "align-vectors, which would take the same rows.",
            at="avial_lab.compiler.passes.loops.vectors.transpose_in_registers:TransposeInRegisters",
            optional=True,
        ),
        Row(
            "thread-loops",
            what="Divides marked loops among the threads of a rank.",
            why="After the passes that rewrite nests as a whole or ask for the mark, which is "
            "gone behind it; the passes below rewrite innermost loops of a thread's part.",
            at="avial_lab.compiler.passes.loops.threads.thread_loops:ThreadLoops",
            optional=True,
        ),
        Row(
            "outline-drivers",
            what="Has LLVM take code as it is that only says which parts run.",
            why="After thread-loops, which makes such code.",
            at="avial_lab.compiler.passes.loops.threads.outline_drivers:OutlineDrivers",
            optional=True,
        ),
        Row(
            "coalesce-loops",
            what="Makes one long row of short rows that lie behind one another in memory.",
            why="After thread-loops, which divides the loop over rows; before the passes that "
            "ask how long a row is.",
            at="avial_lab.compiler.passes.loops.order.coalesce_loops:CoalesceLoops",
            optional=True,
        ),
        Row(
            "version-by-distance",
            what="Asks before a loop how far apart its iterations meet: vectors, if far.",
            why="After the passes on nests: its two versions stand in an scf.if, into which "
            "those do not look.",
            at="avial_lab.compiler.passes.loops.versions.version_by_distance:VersionByDistance",
            optional=True,
        ),
        Row(
            "version-by-argument",
            what="Asks before a loop whether its sines' arguments are within their code's limit.",
            why="After the passes on nests, for the same reason.",
            at="avial_lab.compiler.passes.loops.versions.version_by_argument:VersionByArgument",
            optional=True,
        ),
        Row(
            "pack-operands",
            what="Copies elements that lie apart and that many rows load alike side by side.",
            why="After thread-loops: each part has a table of its own then; before jam-for-loads, "
            "whose rows side by side load from it.",
            at="avial_lab.compiler.passes.loops.vectors.pack_operands:PackOperands",
            optional=True,
        ),
        Row(
            "jam-for-loads",
            what="Runs rows that load the same elements four at a time.",
            why="After thread-loops: rows of one thread's part; before align-vectors, which "
            "writes rows as vectors, one by one.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_loads:JamForLoads",
            optional=True,
        ),
        Row(
            "inline-copies",
            what="Keeps short copies loops, in place of calls of memcpy.",
            why="After thread-loops: LLVM is told of the function that the loop stands in by "
            "now; before align-vectors, which leaves no loop that copies.",
            at="avial_lab.compiler.passes.loops.vectors.inline_copies:InlineCopies",
            optional=True,
        ),
        Row(
            "streaming-stores",
            what="Marks stores that fill a large array, to go past the caches.",
            why="Right before align-vectors, which writes them.",
            at="avial_lab.compiler.passes.loops.vectors.streaming_stores:StreamingStores",
            optional=True,
        ),
        Row(
            "align-vectors",
            what="Writes rows as whole vectors whose stores are aligned.",
            why="Last: nobody above reads vectors.",
            at="avial_lab.compiler.passes.loops.vectors.align_vectors:AlignVectors",
            optional=True,
        ),
    ),
)

# -- host ------------------------------------------------------------------------------------------

HOST = Pipeline(
    "host",
    "code for the CPU",
    (
        Row(
            "emulate-gpu",
            what="GPU kernels become loops over blocks and threads.",
            why="First: what stands in them goes through all that follows. (Stage gpu begins "
            "before.)",
            at="avial_lab.compiler.passes.host.emulate_gpu:EmulateGpu",
        ),
        Row(
            "keep-independent",
            what="Moves the marks of loops into their bodies.",
            why="Before lower-affine, which drops what stands on a loop.",
            at="avial_lab.compiler.passes.llvm.independent_to_llvm:KeepIndependent",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Before convert-linalg-to-loops, which in MLIR 22 ends the process at a loop "
            "inside of one.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "expand-math",
            what="Writes the code of the functions that select-math chose.",
            why="As late as this: until here one operation each, for people and for analyses; "
            "before MLIR's passes on math make calls of libm.",
            at="avial_lab.compiler.passes.arithmetic.expand_math:ExpandMath",
        ),
        Row(
            "convert-linalg-to-loops",
            what="Linear algebra in tasks becomes loops.",
            why="Before the passes on loads and stores, which it writes.",
        ),
        Row(
            "lower-affine",
            what="Affine loops and accesses become those of scf, memref and arith.",
            why="Before the passes on loads and stores: they know those of memref only.",
        ),
        Row(
            "reset-globals",
            what="Globals begin every run with their first values.",
            why="Before copies-to-loops: it writes memref.copy.",
            at="avial_lab.compiler.passes.host.reset_globals:ResetGlobals",
        ),
        Row(
            "copies-to-loops",
            what="memref.copy becomes loops over elements.",
            why="Before check-bounds and bools-to-bytes, which know loads and stores.",
            at="avial_lab.compiler.passes.host.copies_to_loops:CopiesToLoops",
        ),
        Row(
            "check-bounds",
            what="Guards every access, and records those outside of their array.",
            why="As soon as every access is a load or a store, and before bools-to-bytes and the "
            "others write accesses that are not the program's.",
            at="avial_lab.compiler.passes.tasks.check_bounds:CheckBounds",
            when="the reference",
        ),
        Row(
            "bools-to-bytes",
            what="Arrays of i1 become arrays of bytes.",
            why="After all accesses are loads and stores, and before the conversion to LLVM, "
            "which ends the process at a load of i1.",
            at="avial_lab.compiler.passes.host.bools_to_bytes:BoolsToBytes",
        ),
        Row(
            "expm1-to-libm",
            what="expm1 becomes a call of libm's.",
            why="Before convert-math-to-llvm, which makes exp(x) - 1 of it.",
            at="avial_lab.compiler.passes.host.expm1_to_libm:Expm1ToLibm",
        ),
        Row(
            "ieee-min-max",
            what="Minima and maxima become LLVM's own, exact for NaN and the sign of zero.",
            why="Before arith-expand, which takes the second of two zeros, whichever that is.",
            at="avial_lab.compiler.passes.host.ieee_min_max:IeeeMinMax",
        ),
        Row(
            "free-allocations",
            what="Frees what bodies allocate, and moves allocas out of loops.",
            why="After the passes that allocate memory.",
            at="avial_lab.compiler.passes.host.free_allocations:FreeAllocations",
        ),
        Row(
            "mpi-to-llvm",
            what="Messages become calls of MPI; steps leave marks in journal and trace.",
            why="Last: the entry takes pointers behind it, and no memrefs.",
            at="avial_lab.compiler.passes.distribution.mpi_to_llvm:MpiToLlvm",
        ),
    ),
)

# -- llvm ------------------------------------------------------------------------------------------

_FUNCTION = "func.func"

TO_LLVM_DIALECT = Pipeline(
    "llvm",
    "into LLVM's dialect; as much as can be function by function, several at once",
    (
        Row(
            "lower-vector-multi-reduction",
            what="Reductions of vectors in several dimensions become those in one.",
            why="Before convert-vector-to-llvm, which knows those in one.",
            on=_FUNCTION,
        ),
        Row(
            "lower-vector-mask",
            what="Masked operations get their mask as an operand.",
            why="Before convert-vector-to-llvm, which knows no vector.mask.",
            on=_FUNCTION,
        ),
        Row(
            "convert-vector-to-scf",
            what="Loads and stores of vectors in several dimensions become loops.",
            why="Before convert-scf-to-cf, which takes its loops.",
            on=_FUNCTION,
        ),
        Row(
            "scf-forall-to-for",
            what="scf.forall becomes scf.for.",
            why="Before convert-scf-to-cf, which does not know it.",
            on=_FUNCTION,
        ),
        Row(
            "convert-scf-to-cf",
            what="Loops and branches become jumps between blocks.",
            why="After the last pass that reads or writes loops.",
            on=_FUNCTION,
        ),
        Row(
            "convert-complex-to-standard",
            what="Complex arithmetic becomes that of its parts.",
            why="Before the passes on math and arith, which it writes.",
            on=_FUNCTION,
        ),
        Row(
            "memref-expand",
            what="Operations on memory that LLVM's dialect does not know become simpler ones.",
            why="Before expand-strided-metadata and arith-expand, for what it writes.",
            on=_FUNCTION,
        ),
        Row(
            "expand-strided-metadata",
            what="Views become arithmetic on offsets and strides.",
            why="Before lower-affine: that arithmetic is affine.",
            on=_FUNCTION,
        ),
        Row(
            "lower-affine",
            what="Affine arithmetic becomes that of arith.",
            why="After expand-strided-metadata, which writes it.",
            on=_FUNCTION,
        ),
        Row(
            "arith-expand",
            what="Arithmetic that LLVM's dialect does not know becomes simpler.",
            why="After the passes that write arithmetic.",
            on=_FUNCTION,
        ),
        Row(
            "math-extend-to-supported-types",
            what="Functions of half precision are computed in single.",
            why="Before the passes on math below, which know single and double.",
            on=_FUNCTION,
        ),
        Row(
            "convert-math-to-funcs",
            what="Powers of integers become functions.",
            why="Before convert-math-to-llvm and -libm: neither has them.",
        ),
        Row(
            "convert-math-to-llvm",
            what="Functions that LLVM has an operation for become that.",
            why="Before convert-math-to-libm, which makes calls of the rest; log1p is one of "
            "them, since here it would be log(1 + x).",
            options="approximate-log1p=false",
        ),
        Row(
            "convert-math-to-libm",
            what="All other functions become calls of libm.",
            why="After convert-math-to-llvm.",
        ),
        Row(
            "convert-vector-to-llvm",
            what="Vectors become LLVM's.",
            why="Before convert-to-llvm, which has not all of its patterns.",
        ),
        Row(
            "convert-to-llvm",
            what="Everything else becomes LLVM's.",
            why="After the passes that leave only what it knows.",
        ),
        Row(
            "reconcile-unrealized-casts",
            what="Casts between the conversions cancel out.",
            why="Last: each conversion leaves some for the next.",
        ),
    ),
)

LLVM_FACTS = Pipeline(
    "llvm",
    "what is known of memory, in LLVM's words; these four touch different operations",
    (
        Row(
            "signed-offsets",
            what="Takes back the promise that offsets never wrap.",
            why="After the conversion, which makes that promise for every stride.",
            at="avial_lab.compiler.passes.llvm.signed_offsets:SignedOffsets",
            when="some array may run backwards",
        ),
        Row(
            "no-alias-to-llvm",
            what="Pointers of functions marked by no-alias are noalias.",
            why="After the conversion: memrefs are pointers by then.",
            at="avial_lab.compiler.passes.llvm.no_alias_to_llvm:NoAliasToLlvm",
            when="some function is marked",
        ),
        Row(
            "independent-to-llvm",
            what="Marks in loops become annotations of LLVM's loops.",
            why="After the conversion: those annotations stand on jumps.",
            at="avial_lab.compiler.passes.llvm.independent_to_llvm:IndependentToLlvm",
            when="some loop is marked",
        ),
        Row(
            "pool-allocations",
            what="Memory is taken from what the program kept of its last run.",
            why="After the conversion, which makes the calls of malloc and free.",
            at="avial_lab.compiler.passes.llvm.pool_allocations:PoolAllocations",
            when="the program allocates memory",
        ),
    ),
)

# -- gpu -------------------------------------------------------------------------------------------

SELECT = Pipeline(
    "gpu",
    "the part of the program that runs on GPUs",
    (
        Row(
            "select-gpu-tasks",
            what="Drops every function that no GPU task needs.",
            why="First: of what stage mpi left; the host's part is made beside it.",
            at="avial_lab.compiler.passes.gpu.select_gpu_tasks:SelectGpuTasks",
        ),
    ),
)

OUTLINE = Pipeline(
    "gpu",
    "kernels, in mlir-opt's own process",
    (
        Row(
            "convert-linalg-to-parallel-loops",
            what="Linear algebra becomes parallel loops.",
            why="Before gpu-map-parallel-loops, which maps those.",
        ),
        Row(
            "lower-affine",
            what="Affine loops and accesses become those of scf, memref and arith.",
            why="Before gpu-map-parallel-loops, which knows scf.parallel.",
        ),
        Row(
            "gpu-map-parallel-loops",
            what="Says which parallel loops go over blocks and which over threads.",
            why="Before convert-parallel-loops-to-gpu, which reads that.",
            on=_FUNCTION,
        ),
        Row(
            "convert-parallel-loops-to-gpu",
            what="Mapped loops become launches.",
            why="Before the launches are outlined.",
        ),
        Row(
            "gpu-launch-sink-index-computations",
            what="Indices that a kernel can compute are computed in it.",
            why="Before gpu-kernel-outlining: fewer arguments.",
        ),
        Row(
            "gpu-kernel-outlining",
            what="Launches become kernels in modules of their own.",
            why="After all of a launch is in it.",
        ),
        Row(
            "nvvm-attach-target",
            what="Says which chip a kernel's module is compiled for.",
            why="Once there are such modules.",
            when="once for each architecture that tasks ask for",
        ),
    ),
)

_KERNELS = "gpu.module"

KERNELS = Pipeline(
    "gpu",
    "PTX of each kernel",
    (
        Row(
            "convert-vector-to-scf",
            what="Loads and stores of vectors in several dimensions become loops.",
            why="Before convert-scf-to-cf, which takes its loops.",
            on=_KERNELS,
        ),
        Row(
            "lower-affine",
            what="Affine loops and accesses become those of scf, memref and arith.",
            why="Before convert-scf-to-cf, which takes its loops.",
            on=_KERNELS,
        ),
        Row(
            "convert-scf-to-cf",
            what="Loops and branches become jumps between blocks.",
            why="After the last pass that reads or writes loops.",
            on=_KERNELS,
        ),
        Row(
            "convert-complex-to-standard",
            what="Complex arithmetic becomes that of its parts.",
            why="Before the conversions, which do not know it.",
            on=_KERNELS,
        ),
        Row(
            "expand-strided-metadata",
            what="Views become arithmetic on offsets and strides.",
            why="Before lower-affine: that arithmetic is affine.",
            on=_KERNELS,
        ),
        Row(
            "lower-affine",
            what="Affine arithmetic becomes that of arith.",
            why="After expand-strided-metadata, which writes it.",
            on=_KERNELS,
        ),
        Row(
            "convert-gpu-to-nvvm",
            what="What is the GPU's becomes NVVM's.",
            why="Before convert-to-llvm: it says how a kernel takes its arrays.",
            on=_KERNELS,
        ),
        Row(
            "convert-to-llvm",
            what="Everything else becomes LLVM's.",
            why="After the passes that leave only what it knows.",
            on=_KERNELS,
        ),
        Row(
            "reconcile-unrealized-casts",
            what="Casts between the conversions cancel out.",
            why="Last of a module: each conversion leaves some for the next.",
            on=_KERNELS,
        ),
        Row(
            "gpu-module-to-binary",
            what="Each module becomes PTX.",
            why="Last: it takes LLVM's dialect.",
            options="format=isa",
        ),
    ),
)

# -- the reference ---------------------------------------------------------------------------------

SEQUENTIAL = Pipeline(
    "reference",
    "the sequential meaning of a program; then as tasks on one rank",
    (
        Row(
            "converge-to-loops",
            what="A converge that counts or watches a buffer becomes the loop it stands for.",
            why="Before unwrap-tasks, which takes the converge away.",
            at="avial_lab.compiler.passes.tasks.converge_to_loops:ConvergeToLoops",
            when="replicates and converges as people write them",
        ),
        Row(
            "unwrap-tasks",
            what="Puts every body in the place of its task.",
            why="After converge-to-loops.",
            at="avial_lab.compiler.passes.tasks.unwrap_tasks:UnwrapTasks",
            when="replicates and converges as people write them",
        ),
        Row(
            "place-in-order",
            what="Places all tasks on one rank, in program order.",
            why="In place of place-tasks; tasks-to-mpi and stage host follow.",
            at="avial_lab.compiler.passes.placement.place_tasks:PlaceInOrder",
            when="tasks",
        ),
    ),
)

CATALOGUE: tuple[Pipeline, ...] = (
    ARITHMETIC, PLAIN, NORMALISE, WHOLE, WRITTEN, PLACE_TASKS, PLACE_PHASES, GROUP_PHASES,
    TASKS_TO_MPI, PHASES_TO_MPI, LOOPS, HOST, TO_LLVM_DIALECT, LLVM_FACTS, SELECT, OUTLINE,
    KERNELS, SEQUENTIAL,
)  # fmt: skip
"""Every pipeline, in the order of the stages."""


def rows() -> Iterator[Row]:
    """All rows in their order; a pass that stands in several places has several."""
    return (row for pipeline in CATALOGUE for row in pipeline.rows)


OPTIONAL = tuple(row.name for row in rows() if row.optional)
"""Passes of the stages `placed` and `loops` that a program can do without: it is slower then, and
its values are the same; within rounding where a pass adds up sums in another order
(align-reductions, block-contractions, block-triangular-solves, merge-split-reductions,
reassociate-sums, privatise-array-sums, privatise-scalar-sums).
"""

SIZES: Mapping[str, Mapping[str, Size]] = {row.name: row.sizes for row in rows() if row.sizes}
"""Options of optional passes that are sizes, which otherwise follow from the machine's."""
