"""Every rewrite of the program, one pass a module: IR in, IR out.

A pass is a frozen dataclass with `__call__(module)`. Its class name in kebab case is its name
(`TasksToMpi`, `tasks-to-mpi`), its fields are its options.

Which passes there are, in which order they run and why so, says the catalogue: `catalogue.py`, or
`avial-lab passes`. The other modules here are what passes are written with; by stage:

avial       control_level

mpi         task_functions, task_parameters, phases, phase_touches, touches, affine_values

loops       row_code, ast_loops, elements, loop_bounds, loop_parts, loop_work, loop_functions,
            loop_invariants, cut_at_element, lane_strides, lane_code
            contractions: join_terms, block_sizes, block_code, contraction_code, term_places,
            panels, packing, register_tiles, gemm_calls, strip_code, table_code, shared_code,
            index_code

host        runtime

gpu         ptx

all         program, operations, notes, llvm_flags
"""
