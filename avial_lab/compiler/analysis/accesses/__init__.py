"""What the tasks of a module touch: roles, regions, and from them the facts the task graph is built
of.
"""

from avial_lab.compiler.analysis.accesses.buffers import caller_memory
from avial_lab.compiler.analysis.accesses.footprints import Touch, body_touches
from avial_lab.compiler.analysis.accesses.program import read_groups, read_program
from avial_lab.compiler.analysis.accesses.view_maps import view_chain

__all__ = [
    "Touch",
    "body_touches",
    "caller_memory",
    "read_groups",
    "read_program",
    "view_chain",
]
