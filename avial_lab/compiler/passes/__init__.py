"""Every rewrite of the program, one pass a module: IR in, IR out.

A pass is a frozen dataclass with `__call__(module)`. Its class name in kebab case is its name
(`TasksToMpi`, `tasks-to-mpi`), its fields are its options. What passes write code with stands in
`codegen`, what they know of a program in `analysis`.

Which passes there are, in which order they run and why so, says the catalogue:
`compiler/catalogue.py`, or `avial-lab passes`.

By folder:

    arithmetic/        how products, sums and elementary functions are rounded
    distir/            tensors on meshes of devices: transforms, and their tasks
    distribution/      what every rank runs: messages, or calls of the ownership runtime
    gpu/               kernels: of GPU tasks, and of loops that devices run
    host/              what a CPU runs: calls of the C library, bytes, allocations
    llvm/              what LLVM is told: no aliases, offsets that do not wrap, memory that is
                       kept
    loops/             a rank's loops, fast
        contractions/  contractions and solves in blocks
        facts/         facts on loops that later passes use: no aliases, independent accesses,
                       parallel
        jam/           unroll-and-jam: for stores, for loads, in registers, for latency
        order/         in which order iterations run: interchange, fusion, tiles, unrolling
        reductions/    sums and extremes in another order, or privatised
        storage/       where values are kept: registers, copies, parts of arrays
        threads/       loops on the threads of a rank
        vectors/       loops in vectors
        versions/      loops in several versions, chosen when they run
    placement/         who takes part, and what is one phase
    ptensor/           recorded arrays as loops on memory that is divided over the ranks
    tasks/             a plain function as tasks

Besides passes there is in some what those of the folder are written with: arrays, control_level,
footprint_functions, held_by_devices, late_sums, local_bodies, memories, peel_at_element,
phase_footprints, phases, propagate, rotate_turns, segments, stages, task_order,
told, windows.
"""
