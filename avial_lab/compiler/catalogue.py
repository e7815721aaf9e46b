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

ARRAYS = Pipeline(
    "source",
    "recorded arrays as loops on memory",
    (
        Row(
            "lower-ptensor",
            what="Lowers array operations to loops, fused before there is memory: chains of "
            "elementwise operations, slices and casts with the reduction or assignment that "
            "takes them.",
            why="First: what follows knows loops on memory alone. It says that nothing is to be "
            "contracted, since where a recording is cut must not change a bit.",
            at="avial_lab.compiler.passes.ptensor.lower_ptensor:LowerPtensor",
        ),
        Row(
            "dist-to-runtime",
            what="Lowers operations on divided memory (dist) to the ownership runtime's memory and "
            "to loops over it.",
            why="Behind lower-ptensor, which makes them; what follows finds out from loops alone "
            "what ranks tell the runtime.",
            at="avial_lab.compiler.passes.ptensor.dist_to_runtime:DistToRuntime",
        ),
    ),
)

GRADIENT = Pipeline(
    "source",
    "functions on tensors differentiated, as --gradient says; the reference, too",
    (
        Row(
            "differentiate",
            what="Adds the gradients of the first result to a function's results (reverse mode).",
            why="First, before tensors are placed: transforms then divide the gradients, too.",
            at="avial_lab.compiler.passes.distir.differentiate:Differentiate",
            when="--gradient names arguments",
        ),
        Row(
            "update-weights",
            what="Weights follow their gradients: SGD, momentum, AdamW.",
            why="Right after differentiate, whose results it takes: transforms divide it, too.",
            at="avial_lab.compiler.passes.distir.update_weights:UpdateWeights",
            when="--update names an optimizer",
        ),
    ),
)

PARALLEL = Pipeline(
    "source",
    "functions on tensors divided over devices, as --parallel says",
    (
        Row(
            "data-parallel",
            what="Divides the batch over more devices; sums over it become partial.",
            why="Transforms run in the order in which --parallel names them, on tensors: each adds "
            "an axis to the meshes, and moves where an operation needs its operands otherwise.",
            at="avial_lab.compiler.passes.distir.data_parallel:DataParallel",
            when="--parallel names it",
        ),
        Row(
            "zero",
            what="Divides what replicas hold: optimizer state (1), gradients (2), weights (3).",
            why="Behind data-parallel, which makes the replicas, wherever --parallel names it.",
            at="avial_lab.compiler.passes.distir.zero:Zero",
            when="--parallel names it",
        ),
        Row(
            "horizontal-parallel",
            what="Divides weights over more devices, and what is computed of them.",
            why="As data-parallel.",
            at="avial_lab.compiler.passes.distir.horizontal_parallel:HorizontalParallel",
            when="--parallel names it",
        ),
        Row(
            "pipeline-parallel",
            what="Puts layers on different devices, and the batch into micro-batches.",
            why="As data-parallel; once in a function, before others or after them.",
            at="avial_lab.compiler.passes.distir.pipeline_parallel:PipelineParallel",
            when="--parallel names it",
        ),
        Row(
            "recompute",
            what="Marks what is computed anew on the way back, and kept by nobody.",
            why="Behind transforms, whose placements say how much each device would keep.",
            at="avial_lab.compiler.passes.distir.recompute:Recompute",
            when="--parallel names it",
        ),
        Row(
            "overlap",
            what="Has sums of gradients move while others are computed, in buckets.",
            why="Behind transforms, which make the sums; lower-placements cuts tasks by it.",
            at="avial_lab.compiler.passes.distir.overlap:Overlap",
            when="--parallel names it",
        ),
        Row(
            "choose-collectives",
            what="Marks by which way each sum is made: a ring, a tree or recursive doubling.",
            why="Behind transforms, which make the sums: small ones take few rounds.",
            at="avial_lab.compiler.passes.distir.choose_collectives:ChooseCollectives",
            when="--parallel names it (collectives)",
        ),
        Row(
            "fuse-segments",
            what="Marks what is computed where it is read, as nothing else reads it.",
            why="Behind transforms, whose moves are between segments: fewer tasks, less is kept.",
            at="avial_lab.compiler.passes.distir.fuse_segments:FuseSegments",
            when="--parallel names it (fuse)",
        ),
    ),
)

PLACED = Pipeline(
    "source",
    "tensors that lie on several devices as tasks",
    (
        Row(
            "lower-placements",
            what="Writes a task for each device and segment between two moves, on its blocks.",
            why="After the transforms on tensors; what follows knows tasks and memory alone.",
            at="avial_lab.compiler.passes.distir.lower_placements:LowerPlacements",
        ),
    ),
)

EXACT = Pipeline(
    "source",
    "operations that MLIR's own rewrites have wrong, in words that those have right",
    (
        Row(
            "index-to-arith",
            what="Lowers arithmetic of the index dialect to arith.",
            why="Before canonicalize, which compares differences without their wrap (llvm#216042), "
            "and the lowering, which negates the least number (llvm PR 223127).",
            at="avial_lab.compiler.passes.arithmetic.index_to_arith:IndexToArith",
        ),
        Row(
            "drop-promises",
            what="Removes flags (nsw, exact) from operations that folders merge.",
            why="Before canonicalize, which makes them of other numbers (llvm PR 189164).",
            at="avial_lab.compiler.passes.arithmetic.drop_promises:DropPromises",
        ),
        Row(
            "floor-wide-integers",
            what="Lowers floordivsi of integers of more than 64 bits to divsi and remsi.",
            why="Before arith-expand, which adds a -1 of 64 bits (tests/witness).",
            at="avial_lab.compiler.passes.arithmetic.floor_wide_integers:FloorWideIntegers",
        ),
    ),
)

ARITHMETIC = Pipeline(
    "source",
    "which arithmetic is used, in a run and in the reference alike",
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
            what="Fuses products that are used only in a sum into an fma, rounded once.",
            why="Before any pass moves code: what is fused is decided on the source, so that any "
            "number of ranks and threads and the reference compute the same bits.",
            at="avial_lab.compiler.passes.arithmetic.contract_fma:ContractFma",
            when="not strict, on a machine with an instruction for it",
        ),
        Row(
            "select-math",
            what="Selects the elementary functions that are expanded inline instead of calling "
            "libm.",
            why="Before any pass moves code, for the same reason; until expand-math they stay "
            "single operations, which the analyses know.",
            at="avial_lab.compiler.passes.arithmetic.select_math:SelectMath",
            when="not strict",
        ),
    ),
)

ON_DEVICES = (
    Row(
        "columns-first",
        what="Divides sums of rows by columns, where a GPU is to add them up.",
        why="Before target-devices, which leaves to the CPU what adds to the same array.",
        at="avial_lab.compiler.passes.placement.columns_first:ColumnsFirst",
        when="--on",
    ),
    Row(
        "sums-in-blocks",
        what="Divides a sum, product, minimum or maximum of one element among a GPU's threads.",
        why="Before target-devices, which leaves to the CPU what adds to one element.",
        at="avial_lab.compiler.passes.placement.sums_in_blocks:SumsInBlocks",
        when="--on",
    ),
    Row(
        "sums-in-copies",
        what="Has a GPU's threads add to copies of a small array where nobody knows the element.",
        why="Behind the two that need no copies; before target-devices, as they are.",
        at="avial_lab.compiler.passes.placement.sums_in_copies:SumsInCopies",
        when="--on",
    ),
    Row(
        "scans-in-blocks",
        what="Has a GPU's threads run the parts of a running sum, whose sums are added afterwards.",
        why="Before order-for-threads and target-devices: by itself it has one element at a time.",
        at="avial_lab.compiler.passes.placement.scans_in_blocks:ScansInBlocks",
        when="--on",
    ),
    Row(
        "order-for-threads",
        what="Puts loops of tasks in an order whose inner loops a GPU's threads can share.",
        why="Before target-devices, which leaves to the CPU what has no such loops.",
        at="avial_lab.compiler.passes.tasks.order_for_threads:OrderForThreads",
        when="--on",
    ),
    Row(
        "target-devices",
        what="Has loops run on the devices that were asked for, whatever their text says.",
        why="Last: it looks at the finished replicates.",
        at="avial_lab.compiler.passes.placement.target_devices:TargetDevices",
        when="--on",
    ),
)
"""For `--on`, behind all that makes or finds replicates."""

PLAIN = Pipeline(
    "avial",
    "from a plain function to tasks; in stage loops on bodies of tasks, by normalise-tasks",
    (
        Row(
            "lift-cf-to-scf",
            what="Raises branches between blocks to structured loops and conditionals.",
            why="First: all later passes look for structured loops, not for branches between "
            "blocks.",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Before canonicalize, which in MLIR 22 aborts the process on a loop nested in such "
            "a loop.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "unroll-short",
            what="Fully unrolls loops over a few neighbours, as in stencils with weights.",
            why="Before the program is divided: fuse-phases, in stage placed, looks for time "
            "tiles, which are only built from perfect nests.",
            at="avial_lab.compiler.passes.loops.order.unroll_short:UnrollShort",
        ),
        Row(
            "fold-index-casts",
            what="Erases casts to fewer bits and back of values that fit.",
            why="Before canonicalize, whose own patterns for it are off: they are wrong.",
            at="avial_lab.compiler.passes.arithmetic.fold_index_casts:FoldIndexCasts",
        ),
        Row(
            "canonicalize",
            what="Folds constants and erases dead operations.",
            why="After unroll-short, whose copies it folds; the analyses then see constants where "
            "the source has arithmetic.",
        ),
        Row(
            "cse",
            what="Eliminates common subexpressions.",
            why="After canonicalize, which makes more values equal.",
        ),
        Row(
            "normalise",
            what="Turns calls, linear algebra and loops of any dialect into affine loops over "
            "memory.",
            why="Before every analysis: they read memory accesses in loops, and nothing else.",
            at="avial_lab.compiler.passes.tasks.normalise:Normalise",
        ),
        Row(
            "check-accesses",
            what="Rejects accesses that are certainly out of bounds.",
            why="As soon as accesses can be read, and before loops are distributed, so that the "
            "message names the access and the loops of the source.",
            at="avial_lab.compiler.passes.tasks.check_accesses:CheckAccesses",
            when="a function",
        ),
        Row(
            "distribute-loops",
            what="Distributes loops of several statements where a part can then be divided.",
            why="Before drop-in divides loops. Like the two below it looks at loops that cannot be "
            "divided yet; it changes neither memory nor iterations, so it is tried first.",
            at="avial_lab.compiler.passes.tasks.distribute_loops:DistributeLoops",
        ),
        Row(
            "privatise-scratch",
            what="Gives each iteration a private copy of an array used as scratch memory.",
            why="For loops that distribute-loops could not make divisible: it costs memory and a "
            "copy.",
            at="avial_lab.compiler.passes.tasks.privatise_scratch:PrivatiseScratch",
        ),
        Row(
            "split-index-sets",
            what="Splits loops at the one iteration that keeps the others from being divided.",
            why="For loops that neither of the two above could make divisible: it makes three "
            "loops of one.",
            at="avial_lab.compiler.passes.tasks.split_index_sets:SplitIndexSets",
        ),
        Row(
            "drop-in",
            what="Wraps parallel nests in replicates, sequential loops around them in converges, "
            "and the rest in tasks.",
            why="After all that changes loops: what it wraps is divided as it is.",
            at="avial_lab.compiler.passes.tasks.drop_in:DropIn",
            when="a function",
        ),
        *ON_DEVICES,
    ),
)

NORMALISE = Pipeline(
    "avial",
    "the steps of normalise",
    (
        Row(
            "inline-calls",
            what="Inlines calls of the module's own functions.",
            why="First: the body of a called function takes all steps below at each call site.",
            at="avial_lab.compiler.passes.tasks.inline_calls:InlineCalls",
        ),
        Row(
            "globals-to-memory",
            what="Allocates the globals that launches use, with their values, in the function.",
            why="After inline-calls, which writes out the functions that name them.",
            at="avial_lab.compiler.passes.tasks.globals_to_memory:GlobalsToMemory",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Again: inlined bodies may contain some, and canonicalize comes next.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "one-shot-bufferize",
            what="Bufferizes tensors.",
            why="Before linear algebra becomes loops: the analyses read loops over memory.",
        ),
        Row(
            "fold-index-casts",
            what="Erases casts to fewer bits and back of values that fit.",
            why="After inline-calls, which makes such pairs; before canonicalize, as above.",
            at="avial_lab.compiler.passes.arithmetic.fold_index_casts:FoldIndexCasts",
        ),
        Row(
            "canonicalize",
            what="Folds constants and erases dead operations.",
            why="Sizes of inlined subviews become constants, and subviews out of bounds are "
            "rejected, before linalg-to-loops needs their sizes.",
        ),
        Row(
            "linalg-generalize-named-ops",
            what="Turns named operations of linear algebra into linalg.generic.",
            why="Before parallel-first, which reorders the iterators of linalg.generic.",
        ),
        Row(
            "keep-places",
            what="Restores the source locations of generalised operations.",
            why="Right after linalg-generalize-named-ops, which drops locations.",
            at="avial_lab.compiler.passes.tasks.normalise:KeepPlaces",
        ),
        Row(
            "parallel-first",
            what="Moves parallel iterators of linear algebra outside its reductions.",
            why="While the iterators can still be reordered: linalg-to-loops fixes their order.",
            at="avial_lab.compiler.passes.tasks.parallel_first:ParallelFirst",
        ),
        Row(
            "linalg-to-loops",
            what="Lowers linear algebra to affine loops, or to scf loops for subviews of variable "
            "size.",
            why="Once its iterators are in the order that the loops will have.",
            at="avial_lab.compiler.passes.tasks.normalise:LinalgToLoops",
        ),
        Row(
            "only-loops",
            what="Rejects remaining tensors and linear algebra.",
            why="After the last pass that lowers them.",
            at="avial_lab.compiler.passes.tasks.normalise:OnlyLoops",
        ),
        Row(
            "copies-to-loops",
            what="Lowers memref.copy to loops over elements.",
            why="After one-shot-bufferize and inlining, which introduce copies; the analyses read "
            "loads and stores.",
            at="avial_lab.compiler.passes.host.copies_to_loops:CopiesToLoops",
        ),
        Row(
            "constant-globals",
            what="Marks initialised globals that are never written as constant.",
            why="Once all uses are loads and stores: it knows only those as reads and writes.",
            at="avial_lab.compiler.passes.tasks.normalise:ConstantGlobals",
        ),
        Row(
            "scf-forall-to-parallel",
            what="Lowers scf.forall to scf.parallel.",
            why="Before the steps below, which handle scf.parallel.",
        ),
        Row(
            "index-loops",
            what="Changes loop variables from integer types to index.",
            why="Before raise-to-affine: variables of affine loops are of type index. The casts it "
            "inserts are folded right below, by fold-index-casts.",
            at="avial_lab.compiler.passes.tasks.index_loops:IndexLoops",
        ),
        Row(
            "fold-index-casts",
            what="Erases casts to fewer bits and back of values that fit.",
            why="After index-loops, which casts loop variables; before canonicalize, as above.",
            at="avial_lab.compiler.passes.arithmetic.fold_index_casts:FoldIndexCasts",
        ),
        Row(
            "canonicalize",
            what="Folds constants and erases dead operations.",
            why="After the steps that create loops, bounds and casts.",
        ),
        Row(
            "cse",
            what="Eliminates common subexpressions.",
            why="After canonicalize, which makes more values equal.",
        ),
        Row(
            "mem2reg",
            what="Promotes memrefs of one element to values.",
            why="Before the two steps below, so that only what has to be in memory is.",
        ),
        Row(
            "place-allocations",
            what="Sinks scratch memory into the parallel loops that use it, and hoists allocations "
            "out of sequential loops.",
            why="After mem2reg, so that it moves only what stays in memory.",
            at="avial_lab.compiler.passes.tasks.place_allocations:PlaceAllocations",
        ),
        Row(
            "iter-args-to-memory",
            what="Stores the iteration arguments of loops at control level in memory, which ranks "
            "exchange.",
            why="After mem2reg, which turns variables in memory into iteration arguments.",
            at="avial_lab.compiler.passes.tasks.iter_args_to_memory:IterArgsToMemory",
        ),
        Row(
            "raise-to-affine",
            what="Raises loops and accesses of other dialects to affine where possible.",
            why="After iter-args-to-memory: a value that is now loaded from memory cannot be a "
            "bound or a subscript of affine operations.",
            at="avial_lab.compiler.passes.tasks.raise_to_affine:RaiseToAffine",
        ),
        Row(
            "canonicalize",
            what="Folds constants and erases dead operations.",
            why="Last: folds the maps that raise-to-affine created.",
        ),
    ),
)

WHOLE = Pipeline(
    "avial",
    "a plain function that cannot be divided",
    (
        Row(
            "lift-cf-to-scf",
            what="Raises branches between blocks to structured loops and conditionals.",
            why="Before one-task: the body of a task is a single block.",
        ),
        Row(
            "one-task",
            what="Wraps the whole function in one task.",
            why="In place of all passes that divide it.",
            at="avial_lab.compiler.passes.tasks.one_task:OneTask",
        ),
    ),
)

WRITTEN = Pipeline(
    "avial",
    "replicates and converges written by hand",
    (
        Row(
            "converge-to-loops",
            what="Lowers a converge that counts or tests a buffer to the loop it denotes.",
            why="Before the lowering, which handles loops; complete-replicates looks at each "
            "replicate by itself, so either may come first.",
            at="avial_lab.compiler.passes.tasks.converge_to_loops:ConvergeToLoops",
        ),
        Row(
            "complete-replicates",
            what="Finds the loop that a replicate divides, and proves that it is parallel.",
            why="Before place-phases, which divides that loop.",
            at="avial_lab.compiler.passes.tasks.complete_replicates:CompleteReplicates",
        ),
        *ON_DEVICES,
    ),
)

# -- placed ----------------------------------------------------------------------------------------

PLACE_TASKS = Pipeline(
    "placed",
    "tasks written by hand",
    (
        Row(
            "place-tasks",
            what="Writes the schedule onto the tasks: rank, device, order, messages.",
            why="Alone: it only annotates, and tasks-to-mpi reads its annotations.",
            at="avial_lab.compiler.passes.placement.place_tasks:PlaceTasks",
            by_name="avial_lab.compiler.passes.placement.place_tasks:PlaceTasksHere",
        ),
    ),
)

PLACE_PHASES = Pipeline(
    "placed",
    "divided loops: the ranks of each phase",
    (
        Row(
            "place-phases",
            what="Annotates each phase with the ranks that may run it and with its division.",
            why="First: the passes below read on how many ranks a phase runs.",
            at="avial_lab.compiler.passes.placement.place_phases:PlacePhases",
            by_name="avial_lab.compiler.passes.placement.place_phases:PlacePhasesHere",
        ),
    ),
)

GROUP_PHASES = Pipeline(
    "placed",
    "divided loops: which phases run as one",
    (
        Row(
            "align-reductions",
            what="Divides column sums by the rows that a rank already owns, with partial sums "
            "where that takes less time.",
            why="First of these: without it, keep-on-one would leave such programs to one rank.",
            at="avial_lab.compiler.passes.placement.align_reductions:AlignReductions",
            optional=True,
            when="several ranks, a plain function, no division given",
        ),
        Row(
            "keep-on-one",
            what="Runs a program on one of several ranks where messages take longer than the work "
            "they save.",
            why="Before the three below, which treat such a program as one of a single rank.",
            at="avial_lab.compiler.passes.placement.keep_on_one:KeepOnOne",
            optional=True,
            when="several ranks, a plain function, no division given",
        ),
        Row(
            "widen-halos",
            what="Exchanges wider halos of stencils once every several time steps.",
            why="Before fuse-phases, which leaves phases with a wide halo as they are.",
            at="avial_lab.compiler.passes.placement.widen_halos:WidenHalos",
            optional=True,
            sizes={"steps": Size("time steps between two halo exchanges", 1, 1 << 12)},
            when="several ranks",
        ),
        Row(
            "fuse-phases",
            what="Fuses the phases of a time loop into one task, where that loop can be tiled or "
            "blocked, or where they are short.",
            why="Before join-phases, which skips phases that are fused already.",
            at="avial_lab.compiler.passes.placement.fuse_phases:FusePhases",
            optional=True,
            when="one rank; on several, a plain function with no division given",
        ),
        Row(
            "join-phases",
            what="Fuses phases that access the same array into one task, which reads it once.",
            why="Last: it works on the phases left by the passes above.",
            at="avial_lab.compiler.passes.placement.join_phases:JoinPhases",
            optional=True,
            when="one rank; on several, a plain function with no division given",
        ),
    ),
)

# -- mpi -------------------------------------------------------------------------------------------

TASKS_TO_MPI = Pipeline(
    "mpi",
    "tasks: a block of steps for every rank",
    (
        Row(
            "tasks-to-mpi",
            what="Lowers tasks to functions, and the schedule to steps, sends and receives.",
            why="After place-tasks, whose decisions it implements.",
            at="avial_lab.compiler.passes.distribution.tasks_to_mpi:TasksToMpi",
        ),
    ),
)

PHASES_TO_MPI = Pipeline(
    "mpi",
    "phases: the control flow for every rank, with its part of each nest",
    (
        Row(
            "emulate-gpu",
            what="Lowers GPU kernels to loops over blocks and threads.",
            why="Before replicate-to-mpi, which outlines the loops of a phase.",
            at="avial_lab.compiler.passes.host.emulate_gpu:EmulateGpu",
        ),
        Row(
            "replicate-to-mpi",
            what="Lowers phases to functions; the entry calls the ownership runtime around them, "
            "and checks bounds that it loads.",
            why="Last: it removes the last operations of the avial dialect.",
            at="avial_lab.compiler.passes.distribution.replicate_to_mpi:ReplicateToMpi",
        ),
    ),
)

# -- loops -----------------------------------------------------------------------------------------

_CACHE = Size("bytes of the cache that tiles are sized for", 1 << 10, 1 << 32)

LOOPS = Pipeline(
    "loops",
    "a rank's loops, optimised",
    (
        Row(
            "share-parts",
            what="Cuts long bodies of tasks into parts; those that do the same are one function.",
            why="First: the passes below then take each part once.",
            at="avial_lab.compiler.passes.tasks.share_parts:ShareParts",
            optional=True,
            sizes={"most": Size("most operations of a body that stays whole", 1, 1 << 20)},
        ),
        Row(
            "no-alias",
            what="Marks functions whose arrays do not alias.",
            why="Once functions are cut; the passes below work on functions with this mark.",
            at="avial_lab.compiler.passes.loops.facts.no_alias:NoAlias",
        ),
        Row(
            "normalise-tasks",
            what="Normalises the bodies of tasks to the form of the loops of phases.",
            why="After no-alias, whose mark it reads; before all passes on loops.",
            at="avial_lab.compiler.passes.tasks.normalise_tasks:NormaliseTasks",
            optional=True,
            sizes={"least": Size("fewest iterations of a body that is normalised", 1, 1 << 30)},
        ),
        Row(
            "check-loaded",
            what="Checks once, before a loop with bounds that a task loads, that it stays in its "
            "arrays.",
            why="After normalise-tasks, which makes bounds and subscripts affine, and before all "
            "passes that change loops: the check is of the accesses of the source.",
            at="avial_lab.compiler.passes.tasks.check_loaded:CheckLoaded",
            when="not with no_bounds",
        ),
        Row(
            "outline-launches",
            what="Makes kernels of the launches of GPU tasks.",
            why="Before form-kernels, which does the same with the loops of other tasks.",
            at="avial_lab.compiler.passes.gpu.outline_launches:OutlineLaunches",
        ),
        Row(
            "form-kernels",
            what="Maps parallel loops that a device runs to blocks and threads of kernels.",
            why="After no-alias, whose mark it reads; before the passes that make loops fast for a "
            "CPU, which leave its functions alone.",
            at="avial_lab.compiler.passes.gpu.form_kernels:FormKernels",
        ),
        Row(
            "split-wraparound",
            what="Splits innermost loops where a subscript wraps around the end of an array.",
            why="Before all passes that read subscripts: one with a remainder is not affine, but "
            "between two split points it is.",
            at="avial_lab.compiler.passes.loops.order.split_wraparound:SplitWraparound",
            optional=True,
        ),
        Row(
            "unroll-reductions",
            what="Unrolls sums of a few terms, so that the loop over elements is innermost.",
            why="Before expand-scalars, which would expand such a sum into a row of memory; it "
            "skips what block-contractions blocks.",
            at="avial_lab.compiler.passes.loops.order.unroll_reductions:UnrollReductions",
            optional=True,
            when="not with blas, which handles small products, too",
        ),
        Row(
            "expand-scalars",
            what="Expands loop-carried scalars into arrays, where that enables a better loop order "
            "or makes a contraction.",
            why="Before block-contractions and interchange-loops, which it enables.",
            at="avial_lab.compiler.passes.loops.storage.expand_scalars:ExpandScalars",
            optional=True,
        ),
        Row(
            "merge-split-reductions",
            what="Merges the sums over a triangle and its mirror image into one.",
            why="After expand-scalars, which stores the partial sums in arrays; before "
            "block-contractions, which then finds one contraction over a rectangle.",
            at="avial_lab.compiler.passes.loops.contractions.merge_split_reductions:MergeSplitReductions",
            optional=True,
            when="with block-contractions; neither strict (it changes the order of sums) nor with "
            "blas (whose gemm takes no mirrored operand)",
        ),
        Row(
            "expand-arrays",
            what="Expands scratch arrays that a loop allocates by one row per iteration.",
            why="Before block-contractions, which then finds one contraction over all iterations.",
            at="avial_lab.compiler.passes.loops.storage.expand_arrays:ExpandArrays",
            optional=True,
            when="with block-contractions",
        ),
        Row(
            "block-contractions",
            what="Blocks contractions into packed panels and register tiles, and factorisations "
            "into blocks of steps.",
            why="Before interchange-loops and fuse-loops: blocking gains more than any loop order. "
            "Its loops are marked, and the passes below leave them unchanged.",
            at="avial_lab.compiler.passes.loops.contractions.block_contractions:BlockContractions",
            optional=True,
            sizes={
                "terms": Size("terms of a sum per block", 1, 1 << 16),
                "block": Size("rows per block", 8, 1 << 13, multiple=8),
                "steps": Size("steps of a factorisation per block", 16, 1 << 12),
            },
        ),
        Row(
            "block-triangular-solves",
            what="Blocks triangular solves by rows, divided among threads.",
            why="After block-contractions, whose loops are marked and left alone; before "
            "interchange-loops, for which it marks its own loops as ordered.",
            at="avial_lab.compiler.passes.loops.contractions.block_triangular_solves:BlockTriangularSolves",
            optional=True,
            sizes={"rows": Size("rows per block", 8, 1 << 13, multiple=8)},
        ),
        Row(
            "interchange-loops",
            what="Interchanges and distributes loops so that the innermost has unit strides.",
            why="After block-contractions and block-triangular-solves, which choose nests first; "
            "before all passes on innermost loops.",
            at="avial_lab.compiler.passes.loops.order.interchange_loops:InterchangeLoops",
            optional=True,
        ),
        Row(
            "fuse-loops",
            what="Fuses nests that access the same elements, to load them once.",
            why="After interchange-loops: it fuses loops of the same order; before "
            "promote-scalars, whose loops carry values and are not fused.",
            at="avial_lab.compiler.passes.loops.order.fuse_loops:FuseLoops",
            optional=True,
        ),
        Row(
            "tile-time",
            what="Tiles time loops: several steps on each part of the arrays while it is in cache.",
            why="After interchange-loops: it keeps the order of loops inside its tiles, and marks "
            "the tiles, so that no pass below changes them.",
            at="avial_lab.compiler.passes.loops.order.tile_time:TileTime",
            optional=True,
            sizes={
                "l1": _CACHE,
                "l2": _CACHE,
                "widths": Size(
                    "slabs (and lines) along each face of a time tile", 1, 1 << 16, numbers=(2, 3)
                ),
            },
        ),
        Row(
            "coalesce-reductions",
            what="Coalesces loops over rows and columns that are added to the same elements.",
            why="Before promote-scalars and reassociate-sums, which look at the innermost loop: "
            "the coalesced one is long.",
            at="avial_lab.compiler.passes.loops.order.coalesce_loops:CoalesceReductions",
            optional=True,
        ),
        Row(
            "promote-scalars",
            what="Keeps elements that an innermost loop accesses in every iteration in registers.",
            why="Once loops are in their final order; before reassociate-sums and "
            "independent-accesses, to which such an element is a dependence through memory.",
            at="avial_lab.compiler.passes.loops.storage.promote_scalars:PromoteScalars",
            optional=True,
        ),
        Row(
            "reassociate-sums",
            what="Lets LLVM reassociate, and so vectorise, the sums of an innermost loop.",
            why="After promote-scalars, which makes the sum a loop-carried value; before "
            "privatise-array-sums, privatise-scalar-sums and mark-parallel, whose loops it skips.",
            at="avial_lab.compiler.passes.loops.reductions.reassociate_sums:ReassociateSums",
            optional=True,
        ),
        Row(
            "independent-accesses",
            what="Marks innermost loops without loop-carried dependences through memory.",
            why="After the passes that change the loads and stores of innermost loops; before "
            "privatise-array-sums, privatise-scalar-sums and mark-parallel, whose loops it skips.",
            at="avial_lab.compiler.passes.loops.facts.independent_accesses:IndependentAccesses",
            optional=True,
        ),
        Row(
            "privatise-array-sums",
            what="Gives each thread private sums, where all rows are added to the same array.",
            why="Before mark-parallel, which finds such loops sequential; it marks the loops over "
            "its parts itself.",
            at="avial_lab.compiler.passes.loops.reductions.privatise_array_sums:PrivatiseArraySums",
            optional=True,
        ),
        Row(
            "privatise-scalar-sums",
            what="Divides a long sum, minimum or maximum into parts, one per thread.",
            why="After privatise-array-sums, which takes sums of rows first; before mark-parallel, "
            "for the same reason.",
            at="avial_lab.compiler.passes.loops.reductions.privatise_scalar_sums:PrivatiseScalarSums",
            optional=True,
        ),
        Row(
            "mark-parallel",
            what="Marks the outermost parallel loops.",
            why="After the passes that mark their own loops, which it leaves alone; before those "
            "that read the mark: jam-in-registers to thread-loops.",
            at="avial_lab.compiler.passes.loops.facts.mark_parallel:MarkParallel",
        ),
        Row(
            "jam-in-registers",
            what="Keeps short rows of sums in registers, several rows at once (unroll-and-jam).",
            why="Before jam-for-stores, which would load and store such rows once every few terms.",
            at="avial_lab.compiler.passes.loops.jam.jam_in_registers:JamInRegisters",
            optional=True,
        ),
        Row(
            "jam-for-stores",
            what="Jams rows that are added to the same sums (unroll-and-jam).",
            why="Before vectorise-outer and jam-for-latency, which handle the remaining rows; "
            "before thread-loops, after which the number of rows is not known.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_stores:JamForStores",
            optional=True,
            sizes={"rows": Size("rows jammed", 2, 16)},
        ),
        Row(
            "vectorise-outer",
            what="Vectorises a parallel loop around one that carries values (outer-loop "
            "vectorisation).",
            why="Before jam-for-latency, which handles the rows that cannot be vector lanes.",
            at="avial_lab.compiler.passes.loops.vectors.vectorise_outer:VectoriseOuter",
            optional=True,
            sizes={"lanes": Size("iterations as vector lanes", 2, 64)},
        ),
        Row(
            "jam-for-latency",
            what="Interleaves rows that are chains of dependences, to hide latency.",
            why="After vectorise-outer; before thread-loops, which removes the mark of parallel "
            "rows, those that need no lag.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_latency:JamForLatency",
            optional=True,
            sizes={"rows": Size("rows interleaved", 2, 64)},
        ),
        Row(
            "vectorise-extremes",
            what="Vectorises the search for the minimum or maximum of a row.",
            why="After the passes that jam rows: it takes the innermost loops they left, and they "
            "do not recognise its loops.",
            at="avial_lab.compiler.passes.loops.reductions.vectorise_extremes:VectoriseExtremes",
            optional=True,
        ),
        Row(
            "transpose-in-registers",
            what="Transposes tiles in registers where one array is read across its rows.",
            why="Before thread-loops, which removes the mark of the loop over rows; before "
            "align-vectors, which would take the same rows.",
            at="avial_lab.compiler.passes.loops.vectors.transpose_in_registers:TransposeInRegisters",
            optional=True,
        ),
        Row(
            "thread-loops",
            what="Divides parallel loops among the threads of a rank.",
            why="After the passes that rewrite whole nests or read the mark, which it removes; the "
            "passes below rewrite innermost loops of a thread's part.",
            at="avial_lab.compiler.passes.loops.threads.thread_loops:ThreadLoops",
            optional=True,
        ),
        Row(
            "outline-drivers",
            what="Outlines cold code, which LLVM then compiles without optimisation.",
            why="After thread-loops, which creates such code.",
            at="avial_lab.compiler.passes.loops.threads.outline_drivers:OutlineDrivers",
            optional=True,
        ),
        Row(
            "coalesce-loops",
            what="Coalesces loops over short rows that are contiguous in memory.",
            why="After thread-loops, which divides the loop over rows; before the passes that "
            "depend on the length of a row.",
            at="avial_lab.compiler.passes.loops.order.coalesce_loops:CoalesceLoops",
            optional=True,
        ),
        Row(
            "version-by-distance",
            what="Versions a loop by its dependence distance at run time: vectorised if it is long "
            "enough.",
            why="After the passes on nests: its two versions are in an scf.if, which those passes "
            "skip.",
            at="avial_lab.compiler.passes.loops.versions.version_by_distance:VersionByDistance",
            optional=True,
        ),
        Row(
            "version-by-argument",
            what="Versions a loop by whether the arguments of its sines are small enough for "
            "inline code.",
            why="After the passes on nests, for the same reason.",
            at="avial_lab.compiler.passes.loops.versions.version_by_argument:VersionByArgument",
            optional=True,
        ),
        Row(
            "pack-operands",
            what="Packs strided elements that many rows load into contiguous memory.",
            why="After thread-loops, so that each part packs its own; before jam-for-loads, whose "
            "rows load the packed elements.",
            at="avial_lab.compiler.passes.loops.vectors.pack_operands:PackOperands",
            optional=True,
        ),
        Row(
            "jam-for-loads",
            what="Jams four rows that load the same elements (unroll-and-jam).",
            why="After thread-loops: it jams rows of one thread's part; before align-vectors, "
            "which vectorises single rows.",
            at="avial_lab.compiler.passes.loops.jam.jam_for_loads:JamForLoads",
            optional=True,
        ),
        Row(
            "duplicate-function-elimination",
            what="Makes equal functions one.",
            why="After thread-loops, which makes one of each loop: layers have loops in common "
            "though their tasks differ. Before what vectors and LLVM do with each.",
        ),
        Row(
            "inline-copies",
            what="Keeps short copies as loops, instead of calls of memcpy.",
            why="After thread-loops: the attribute is on the outlined function of the loop; before "
            "align-vectors, which leaves no copy loops.",
            at="avial_lab.compiler.passes.loops.vectors.inline_copies:InlineCopies",
            optional=True,
        ),
        Row(
            "streaming-stores",
            what="Marks stores that fill a large array as non-temporal.",
            why="Right before align-vectors, which emits them.",
            at="avial_lab.compiler.passes.loops.vectors.streaming_stores:StreamingStores",
            optional=True,
        ),
        Row(
            "align-vectors",
            what="Vectorises rows with aligned stores and overlapping ends.",
            why="Last: no pass above handles vectors.",
            at="avial_lab.compiler.passes.loops.vectors.align_vectors:AlignVectors",
            optional=True,
        ),
    ),
)

# -- host ------------------------------------------------------------------------------------------

_TO_MACHINE = (
    Row(
        "bools-to-bytes",
        what="Stores arrays of i1 as arrays of bytes.",
        why="Once all accesses are loads and stores, and before the conversion to LLVM, which "
        "aborts the process on a load of i1.",
        at="avial_lab.compiler.passes.host.bools_to_bytes:BoolsToBytes",
    ),
    Row(
        "expm1-to-libm",
        what="Lowers expm1 to a call of libm.",
        why="Before convert-math-to-llvm, which makes exp(x) - 1 of it.",
        at="avial_lab.compiler.passes.host.expm1_to_libm:Expm1ToLibm",
    ),
    Row(
        "ieee-min-max",
        what="Lowers minima and maxima to LLVM's intrinsics, exact for NaN and the sign of zero.",
        why="Before arith-expand, which takes the second of two zeros, whatever its sign.",
        at="avial_lab.compiler.passes.host.ieee_min_max:IeeeMinMax",
    ),
    Row(
        "free-allocations",
        what="Frees what bodies allocate, and moves allocas out of loops.",
        why="After the passes that allocate memory.",
        at="avial_lab.compiler.passes.host.free_allocations:FreeAllocations",
    ),
    Row(
        "launch-on-devices",
        what="Puts the calls that devices make into their queues, with arrays where they lie "
        "there.",
        why="Once functions have the arguments that they keep; before the entry takes pointers.",
        at="avial_lab.compiler.passes.host.launch_on_devices:LaunchOnDevices",
    ),
    Row(
        "mpi-to-llvm",
        what="Lowers messages to calls of MPI; steps record themselves in journal and trace.",
        why="Last: after it the entry takes pointers, not memrefs.",
        at="avial_lab.compiler.passes.distribution.mpi_to_llvm:MpiToLlvm",
    ),
)
"""What the way to LLVM's dialect ends with, of a run and of the reference."""

HOST = Pipeline(
    "host",
    "code for the CPU",
    (
        Row(
            "emulate-gpu",
            what="Lowers GPU kernels to loops over blocks and threads.",
            why="First: their bodies take all passes below. (Stage gpu begins before.)",
            at="avial_lab.compiler.passes.host.emulate_gpu:EmulateGpu",
        ),
        Row(
            "keep-independent",
            what="Moves the marks of loops into their bodies.",
            why="Before lower-affine, which drops attributes of loops.",
            at="avial_lab.compiler.passes.llvm.independent_to_llvm:KeepIndependent",
        ),
        Row(
            "remove-empty-loops",
            what="Erases loops whose constant bounds leave no iteration.",
            why="Before convert-linalg-to-loops, which in MLIR 22 aborts the process on a loop "
            "nested in such a loop.",
            at="avial_lab.compiler.passes.tasks.remove_empty_loops:RemoveEmptyLoops",
        ),
        Row(
            "expand-math",
            what="Expands the functions that select-math selected.",
            why="This late, since until here each is a single operation, for readers and analyses; "
            "before MLIR's passes on math make calls of libm.",
            at="avial_lab.compiler.passes.arithmetic.expand_math:ExpandMath",
        ),
        Row(
            "convert-linalg-to-loops",
            what="Lowers linear algebra in tasks to loops.",
            why="Before the passes on loads and stores, which it creates.",
        ),
        Row(
            "exact-affine",
            what="Lowers affine expressions of values from memory to arith, exact for all values.",
            why="Before lower-affine, which negates the least value (llvm PR 215696).",
            at="avial_lab.compiler.passes.arithmetic.exact_affine:ExactAffine",
        ),
        Row(
            "lower-affine",
            what="Lowers affine loops and accesses to scf, memref and arith.",
            why="Before the passes on loads and stores: they handle those of memref only.",
        ),
        Row(
            "switches-to-ifs",
            what="Lowers switches on an index to comparisons of 64 bits.",
            why="Before convert-scf-to-cf, which compares 32 of them.",
            at="avial_lab.compiler.passes.host.switches_to_ifs:SwitchesToIfs",
        ),
        Row(
            "reset-globals",
            what="Resets globals to their initial values at the start of every run.",
            why="Before copies-to-loops: it creates memref.copy.",
            at="avial_lab.compiler.passes.host.reset_globals:ResetGlobals",
        ),
        Row(
            "copies-to-loops",
            what="Lowers memref.copy to loops over elements.",
            why="Before check-bounds and bools-to-bytes, which handle loads and stores.",
            at="avial_lab.compiler.passes.host.copies_to_loops:CopiesToLoops",
        ),
        *_TO_MACHINE,
        Row(
            "leave-tasks",
            what="Turns the checks of check-loaded into branches to the end of the task.",
            why="Last: after it functions have several blocks.",
            at="avial_lab.compiler.passes.host.leave_tasks:LeaveTasks",
        ),
    ),
)

# -- llvm ------------------------------------------------------------------------------------------

_FUNCTION = "func.func"

HOST_ALONE = Pipeline(
    "llvm",
    "the CPU's part of the program",
    (
        Row(
            "drop-device-kernels",
            what="Erases kernels that only devices run.",
            why="First, once stage gpu is made of them: they are in the gpu dialect.",
            at="avial_lab.compiler.passes.llvm.drop_device_kernels:DropDeviceKernels",
            when="tasks launch kernels",
        ),
    ),
)

TO_LLVM_DIALECT = Pipeline(
    "llvm",
    "into the LLVM dialect; function by function and several at once where possible",
    (
        Row(
            "lower-vector-multi-reduction",
            what="Lowers reductions of multi-dimensional vectors to one dimension.",
            why="Before convert-vector-to-llvm, which handles one dimension only.",
            on=_FUNCTION,
        ),
        Row(
            "lower-vector-mask",
            what="Lowers vector.mask: masked operations get their mask as an operand.",
            why="Before convert-vector-to-llvm, which does not handle vector.mask.",
            on=_FUNCTION,
        ),
        Row(
            "convert-vector-to-scf",
            what="Lowers loads and stores of multi-dimensional vectors, row by row.",
            why="Unrolled: its loops keep a vector on the stack, anew in every iteration around "
            "them. Before convert-scf-to-cf, which lowers the conditions that it makes.",
            options="full-unroll=true",
            on=_FUNCTION,
        ),
        Row(
            "scf-forall-to-for",
            what="Lowers scf.forall to scf.for.",
            why="Before convert-scf-to-cf, which does not handle it.",
            on=_FUNCTION,
        ),
        Row(
            "convert-scf-to-cf",
            what="Lowers loops and conditionals to branches between blocks.",
            why="After the last pass that reads or creates loops.",
            on=_FUNCTION,
        ),
        Row(
            "convert-complex-to-standard",
            what="Lowers complex arithmetic to real arithmetic.",
            why="Before the passes on math and arith, which it creates.",
            on=_FUNCTION,
        ),
        Row(
            "memref-expand",
            what="Expands memory operations that the LLVM dialect lacks.",
            why="Before expand-strided-metadata and arith-expand, which lower what it creates.",
            on=_FUNCTION,
        ),
        Row(
            "expand-strided-metadata",
            what="Lowers views to arithmetic on offsets and strides.",
            why="Before lower-affine: that arithmetic is affine.",
            on=_FUNCTION,
        ),
        Row(
            "lower-affine",
            what="Lowers affine arithmetic to arith.",
            why="After expand-strided-metadata, which creates it.",
            on=_FUNCTION,
        ),
        Row(
            "arith-expand",
            what="Expands arithmetic that the LLVM dialect lacks.",
            why="After the passes that create arithmetic.",
            on=_FUNCTION,
        ),
        Row(
            "math-extend-to-supported-types",
            what="Computes functions of half precision in single precision.",
            why="Before the passes on math below, which handle single and double.",
            on=_FUNCTION,
        ),
        Row(
            "convert-math-to-funcs",
            what="Lowers integer powers to functions.",
            why="Before convert-math-to-llvm and -libm: neither handles them.",
        ),
        Row(
            "convert-math-to-llvm",
            what="Lowers functions that LLVM has intrinsics for to those.",
            why="Before convert-math-to-libm, which lowers the rest to calls; log1p is one of "
            "them, since here it would become log(1 + x).",
            options="approximate-log1p=false",
        ),
        Row(
            "convert-math-to-libm",
            what="Lowers all other functions to calls of libm.",
            why="After convert-math-to-llvm.",
        ),
        Row(
            "convert-vector-to-llvm",
            what="Lowers vectors to the LLVM dialect.",
            why="Before convert-to-llvm, which lacks some of its patterns.",
        ),
        Row(
            "convert-to-llvm",
            what="Lowers everything else to the LLVM dialect.",
            why="After the passes that leave only operations it handles.",
        ),
        Row(
            "reconcile-unrealized-casts",
            what="Removes the casts between conversions.",
            why="Last: each conversion leaves some for the next.",
        ),
    ),
)

LLVM_FACTS = Pipeline(
    "llvm",
    "what is known of memory, as LLVM attributes; these change different operations",
    (
        Row(
            "signed-offsets",
            what="Removes the no-wrap flags of address computations.",
            why="After the conversion, which sets these flags for every stride.",
            at="avial_lab.compiler.passes.llvm.signed_offsets:SignedOffsets",
            when="some array may have a negative stride",
        ),
        Row(
            "no-alias-to-llvm",
            what="Marks pointer arguments of functions marked by no-alias as noalias.",
            why="After the conversion: memrefs are pointers by then.",
            at="avial_lab.compiler.passes.llvm.no_alias_to_llvm:NoAliasToLlvm",
            when="some function is marked",
        ),
        Row(
            "independent-to-llvm",
            what="Turns marks in loops into LLVM loop annotations.",
            why="After the conversion: those annotations are attributes of branches.",
            at="avial_lab.compiler.passes.llvm.independent_to_llvm:IndependentToLlvm",
            when="some loop is marked",
        ),
        Row(
            "pool-allocations",
            what="Allocates from memory that the program kept from its previous run.",
            why="After the conversion, which creates the calls of malloc and free.",
            at="avial_lab.compiler.passes.llvm.pool_allocations:PoolAllocations",
            when="the program allocates memory",
        ),
        Row(
            "asserts-to-runtime",
            what="Tells the run of a failed assertion, and ends the task there.",
            why="After the conversion, which makes assertions print and end the process.",
            at="avial_lab.compiler.passes.llvm.asserts_to_runtime:AssertsToRuntime",
            when="the program asserts something",
        ),
        Row(
            "embed-kernels",
            what="Puts the PTX of kernels into the program.",
            why="Once it is made, which takes as long as the conversion.",
            at="avial_lab.compiler.passes.llvm.embed_kernels:EmbedKernels",
            when="the program launches kernels",
        ),
    ),
)

# -- gpu -------------------------------------------------------------------------------------------

_KERNELS = "gpu.module"

KERNELS = Pipeline(
    "gpu",
    "PTX of each kernel",
    (
        Row(
            "convert-nvgpu-to-nvvm",
            what="Lowers copies to shared memory and products of matrix units to NVVM.",
            why="Before convert-gpu-to-nvvm, which decides where memory is.",
            on=_KERNELS,
        ),
        Row(
            "convert-vector-to-scf",
            what="Lowers loads and stores of multi-dimensional vectors, row by row.",
            why="Unrolled, as for the CPU. Before convert-scf-to-cf, which lowers the conditions "
            "that it makes.",
            options="full-unroll=true",
            on=_KERNELS,
        ),
        Row(
            "convert-vector-to-llvm",
            what="Lowers vectors, and their transfers from and to memory.",
            why="By itself: convert-to-llvm leaves transfers.",
            on=_KERNELS,
        ),
        Row(
            "lower-affine",
            what="Lowers affine loops and accesses to scf, memref and arith.",
            why="Before convert-scf-to-cf, which lowers its loops.",
            on=_KERNELS,
        ),
        Row(
            "convert-scf-to-cf",
            what="Lowers loops and conditionals to branches between blocks.",
            why="After the last pass that reads or creates loops.",
            on=_KERNELS,
        ),
        Row(
            "convert-complex-to-standard",
            what="Lowers complex arithmetic to real arithmetic.",
            why="Before the conversions, which do not handle it.",
            on=_KERNELS,
        ),
        Row(
            "expand-strided-metadata",
            what="Lowers views to arithmetic on offsets and strides.",
            why="Before lower-affine: that arithmetic is affine.",
            on=_KERNELS,
        ),
        Row(
            "lower-affine",
            what="Lowers affine arithmetic to arith.",
            why="After expand-strided-metadata, which creates it.",
            on=_KERNELS,
        ),
        Row(
            "convert-gpu-to-nvvm",
            what="Lowers GPU operations to NVVM.",
            why="Before convert-to-llvm: it decides how a kernel takes its arrays.",
            on=_KERNELS,
        ),
        Row(
            "convert-to-llvm",
            what="Lowers everything else to the LLVM dialect.",
            why="After the passes that leave only operations it handles.",
            on=_KERNELS,
        ),
        Row(
            "reconcile-unrealized-casts",
            what="Removes the casts between conversions.",
            why="Last on a module: each conversion leaves some for the next.",
            on=_KERNELS,
        ),
        Row(
            "gpu-module-to-binary",
            what="Compiles each module to PTX.",
            why="Last: its input is the LLVM dialect.",
            options="format=isa",
        ),
    ),
)

LAUNCHED = Pipeline(
    "gpu",
    "the kernels of loops, from what the CPU would run",
    (
        Row(
            "convert-complex-to-standard",
            what="Lowers complex arithmetic to real arithmetic.",
            why="Before kernels-to-gpu: an absolute value has a square root in it.",
        ),
        Row(
            "kernels-to-gpu",
            what="Makes a module of the gpu dialect of each kernel, with pointers for arrays.",
            why="On code for the CPU in its last form: the device computes what that says.",
            at="avial_lab.compiler.passes.gpu.kernels_to_gpu:KernelsToGpu",
        ),
    ),
)

EXACT_MATH = Pipeline(
    "gpu",
    "PTX of each kernel of loops, before what is done for all kernels",
    (
        Row(
            "convert-math-to-llvm",
            what="Lowers functions with one right value to LLVM's intrinsics.",
            why="Before convert-gpu-to-nvvm, which calls a library whose roots are approximate.",
            on=_KERNELS,
        ),
    ),
)

# -- the reference ---------------------------------------------------------------------------------

SEQUENTIAL = Pipeline(
    "reference",
    "the sequential meaning of the text as it was read",
    (
        Row(
            "named-to-generic",
            what="Writes named operations of linear algebra as generic ones, by their definition.",
            why="Before the passes of stage source that decide which products are rounded with "
            "their sums, which read bodies.",
            at="avial_lab.compiler.worker.reference.linalg_loops:NamedToGeneric",
        ),
        Row(
            "converge-to-loops",
            what="Lowers a converge that counts or tests a buffer to the loop it denotes.",
            why="Before unwrap-tasks, which removes the converge.",
            at="avial_lab.compiler.passes.tasks.converge_to_loops:ConvergeToLoops",
            when="replicates and converges written by hand",
        ),
        Row(
            "unwrap-tasks",
            what="Replaces every task by its body.",
            why="After converge-to-loops.",
            at="avial_lab.compiler.passes.tasks.unwrap_tasks:UnwrapTasks",
            when="replicates and converges written by hand",
        ),
        Row(
            "task-steps",
            what="Outlines each task to a function, called in program order.",
            why="In place of the two above; what follows is about functions.",
            at="avial_lab.compiler.worker.reference.task_steps:TaskSteps",
            when="tasks",
        ),
    ),
)

DEFINITIONS = Pipeline(
    "reference",
    "what each operation is, by its definition; with bounds checks",
    (
        Row(
            "emulate-gpu",
            what="Lowers GPU kernels to loops over blocks and threads.",
            why="First: what stands in them goes through all that follows.",
            at="avial_lab.compiler.passes.host.emulate_gpu:EmulateGpu",
        ),
        Row(
            "expand-math",
            what="Expands the functions that select-math selected.",
            why="That code is what those functions are, for a run and here.",
            at="avial_lab.compiler.passes.arithmetic.expand_math:ExpandMath",
        ),
        Row(
            "linalg-by-definition",
            what="Lowers linear algebra to loops around loads, bodies and stores.",
            why="Before affine-by-definition: bodies may use affine forms.",
            at="avial_lab.compiler.worker.reference.linalg_loops:LinalgByDefinition",
        ),
        Row(
            "affine-by-definition",
            what="Lowers affine loops, branches, accesses and maps to scf, memref and arith.",
            why="Before check-bounds, which knows those of memref.",
            at="avial_lab.compiler.worker.reference.affine_loops:AffineByDefinition",
        ),
        Row(
            "lower-affine",
            what="Lowers the affine operations that are left: vectors, parallel reductions.",
            why="After affine-by-definition, which leaves them.",
        ),
        Row(
            "switches-by-definition",
            what="Numbers the cases of a switch in their order.",
            why="Before the conversion of scf, which compares only 32 bits.",
            at="avial_lab.compiler.worker.reference.scalars:SwitchesByDefinition",
        ),
        Row(
            "vector-accesses-by-definition",
            what="Lowers transfers, gathers, scatters and masked accesses to loads and stores of "
            "elements.",
            why="After lower-affine, which makes some; before check-bounds, which looks at loads "
            "and stores.",
            at="avial_lab.compiler.worker.reference.vector_accesses:VectorAccessesByDefinition",
        ),
        Row(
            "scalars-by-definition",
            what="Lowers divisions that round up or down to quotient and remainder; removes flags.",
            why="Before the conversions of index and arith, whose code for them is wrong at the "
            "least number (llvm PR 223127).",
            at="avial_lab.compiler.worker.reference.scalars:ScalarsByDefinition",
        ),
        Row(
            "reset-globals",
            what="Resets globals to their initial values at the start of every run.",
            why="Before copies-to-loops: it writes memref.copy.",
            at="avial_lab.compiler.passes.host.reset_globals:ResetGlobals",
        ),
        Row(
            "copies-to-loops",
            what="Lowers memref.copy to loops over elements.",
            why="Before check-bounds and bools-to-bytes, which know loads and stores.",
            at="avial_lab.compiler.passes.host.copies_to_loops:CopiesToLoops",
        ),
        Row(
            "check-bounds",
            what="Guards every access, and records those outside of their array.",
            why="As soon as every access is a load or a store, and before the others write "
            "accesses that are not the program's.",
            at="avial_lab.compiler.passes.tasks.check_bounds:CheckBounds",
            when="not without bounds checks",
        ),
        *_TO_MACHINE,
    ),
)

CATALOGUE: tuple[Pipeline, ...] = (
    ARRAYS, GRADIENT, PARALLEL, PLACED, EXACT, ARITHMETIC, PLAIN, NORMALISE, WHOLE, WRITTEN,
    PLACE_TASKS, PLACE_PHASES, GROUP_PHASES, TASKS_TO_MPI, PHASES_TO_MPI, LOOPS, HOST,
    HOST_ALONE, TO_LLVM_DIALECT, LLVM_FACTS, KERNELS, LAUNCHED, EXACT_MATH, SEQUENTIAL,
    DEFINITIONS,
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
