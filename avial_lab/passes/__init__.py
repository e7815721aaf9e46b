"""Every rewrite of the program, one pass a module: IR in, IR out.

A pass is a frozen dataclass with `__call__(module)`. Its class name in kebab case is its name
(`TasksToMpi`, `tasks-to-mpi`), its fields are its options.

In which order they run stands in `pipelines.py` (tasks) and `spmd.py` (loops). By stage, each with
what it is written with (indented):

arithmetic  contract_products, mark_math, strict_arithmetic

avial       a plain function as tasks
            empty_loops, unroll_short, normalise
                index_loops, inline_calls, parallel_first, carried_to_memory, own_memory,
                control_level, copies_to_loops, raise_loops
            check_accesses, distribute_loops, scratch_per_iteration, cut_loops, drop_in, one_task
            replicates and converges by hand
            converge_to_loops, complete_replicates

placed      who takes part, and what is one phase
            place_tasks, place_phases, share_rows, keep_on_one, widen_halos, fuse_phases,
            join_phases

mpi         what every rank runs
            tasks_to_mpi, replicate_to_mpi
                task_functions, phases, phase_touches, touches, affine_values

loops       a rank's loops, fast
            arrays_apart, normalise_tasks, split_wraps, unroll_sums, expand_scalars, join_sums,
            expand_arrays, order_loops, fuse_nests, tile_time, promote_scalars, reorder_sums,
            independent_accesses, partial_sums, thread_sums, mark_parallel, hold_rows, jam_rows,
            vectorise_rows, interleave_rows, reorder_extremes, transpose_tiles, thread_loops,
            split_drivers, flatten_rows, check_distances, near_arguments, pack_rows, share_loads,
            inline_copies, stream_stores, whole_vectors
                row_code, ast_loops, elements, loop_bounds, loop_parts, loop_work,
                loop_functions, loop_invariants, cut_at_element, lane_strides, lane_code
            block_loops, block_substitutions
                join_terms, block_sizes, block_code, contraction_code, term_places, panels,
                packing, register_tiles, gemm_calls, strip_code, table_code, shared_code, index_code

host        what a CPU runs
            emulate_gpu, expand_math, reset_globals, bools_to_bytes, expm1_to_libm,
            extremes_to_llvm, free_allocations, mpi_to_llvm
                runtime

llvm        independent_to_llvm, apart_to_llvm, signed_offsets, keep_memory

gpu         select_gpu_tasks, ptx

reference   the sequential meaning
            unwrap_tasks, check_bounds

all         program, operations, notes, llvm_flags
"""
