"""What is taken for known of a machine: rates, latencies, and what a core has of everything.

Nothing -> numbers, with their units in their names, each with where it was measured or taken from.
What a machine reports about itself (vectors, caches, cores) is in `cpu.py`; what is measured when
somebody asks is in `machine/measure.py` and `machine/roofline.py`.

These decide between ways that are factors apart (one rank or several, threads or none), so that
they need not be exact. Where programs are named, the number comes from timing them, on virtual
machines with two cores of AMD EPYC or Intel Xeon; `git log -S NAME` finds the tables.
"""

from __future__ import annotations

# -- a core ----------------------------------------------------------------------------------------

CLOCK_HZ = 2.5e9
"""A core's cycles per second if the system does not say: server cores with all of them busy."""

VECTOR_UNITS = 2
"""Vector instructions of arithmetic that a core can begin in a cycle: x86-64 since Haswell and Zen,
most AArch64 (uops.info; vendors' optimisation guides)."""

FMA_LATENCY_CYCLES = 4
"""From a product and a sum to the next that needs it (uops.info, VFMADD: 4 on Intel since Skylake
and on AMD since Zen 3, 5 on Zen and Zen 2)."""

ADD_LATENCY_CYCLES = 3
"""From a sum to the next, and from a product (uops.info, ADDSD and MULSD: 3 on AMD since Zen, 3 to
4 on Intel since Alder Lake, 4 on Intel since Skylake)."""

LOAD_LATENCY_CYCLES = 5
"""Until a value is there that lies in the nearest cache (uops.info: 4 to 5 for integers, up to 7
for vectors, on Intel since Skylake and on AMD since Zen)."""

STORE_TO_LOAD_CYCLES = 7
"""From a value that is stored to the load of it (uops.info, "store-to-load forwarding": 4 to 8)."""

DIVISION_LATENCY_CYCLES = 13
"""From a float that is divided to its quotient (uops.info, DIVSD: 13 to 14 on Intel since Skylake,
13 on AMD since Zen 2); square roots take some more."""

DIVISION_CYCLES = 5
"""Between two such, which have one unit: the same for one and for four (uops.info, DIVSD 4 to 5,
VDIVPD of 256 bits 5 on AMD since Zen 2, 8 on Intel)."""

FAR_FUNCTION_CYCLES = 28
"""A sine or a cosine whose argument may be large (`elementary/`, f64, in a task on an AMD EPYC
9004: 11 ns each, against 0.9 of an exponential function in vectors)."""

LOADS_PER_CYCLE = 2
"""And one store beside them (uops.info: Intel since Haswell, AMD since Zen)."""

LOAD_ACROSS_LINES_CYCLES = 1
"""What a load takes more that lies across two lines of the cache (measured on an AMD EPYC 9004, in
L1, loads of 16, 32 and 64 bytes one after another: 1.1, 1.0, 0.7; AMD's Software Optimization Guide
for AMD64, 5.2: at least one cycle where it is misaligned). Not measured on Intel."""

STORE_ACROSS_LINES_CYCLES = 2
"""The same of a store (16, 32 and 64 bytes: 0.9, 1.8, 1.6)."""

OPERATIONS_PER_CYCLE = 5
"""That a core begins, of whatever kind, with the arithmetic of their indices beside them (4 to 6
micro-operations renamed a cycle: Intel since Haswell, AMD since Zen)."""

BRANCH_MISS_CYCLES = 15
"""What a core has begun in vain where a loop ends (Fog, The microarchitecture of Intel, AMD and VIA
CPUs: 15 to 20)."""

CALL_CYCLES = 10
"""A function is called and left, its registers saved (Fog, the same: some ten instructions)."""

REACHED_OF_PEAK = 0.5
"""The part of what a core can compute that loops reach (gemver, deriche)."""

# -- memory ----------------------------------------------------------------------------------------

LINE_BYTES = 64
"""Of a line of the cache; no vector lies across two where an array begins with one. The same for
x86-64 and most AArch64."""

PAGE_BYTES = 4096
"""In which a core's prefetcher looks for a stream: it follows none across (Intel's optimisation
manual, "data prefetching")."""

WRITE_COMBINING_STREAMS = 4
"""Streams of stores past the caches that a core puts lines together for, at once, where a store is
less than a line (Intel's optimisation manual: 4 to 6 buffers that can be counted on)."""

REQUESTS_IN_FLIGHT = 12
"""Lines that a core waits for at once: its line fill buffers (Intel since Skylake: 12). Row and
column sums of 2000 × 2000 f64 by 1, 4, 8, 12, 16 rows at once: 1099, 684, 584, 527, 577 µs."""

CORE_CACHE_BYTES_PER_S = 60e9
"""What a loop goes through in a core's own caches (gemver, deriche)."""

LAST_CACHE_BYTES_PER_S = 25e9
"""The same in the last cache, by one core."""

MEMORY_BYTES_PER_S = 12e9
"""The same in memory, by one core."""

FOREIGN_CACHE_RATE = 0.5
"""How fast a core goes through what another process has written into caches, to what it does the
second time: lines come from that core, pages are looked up anew (AMD EPYC 9004, virtual: 1.3 MB in
28 µs, then 13; 2.6 MB in 53, then 26)."""

CORES_THAT_FILL_MEMORY = 3
"""So many cores have all that memory can give to a machine, and more of them no more."""

# -- ranks -----------------------------------------------------------------------------------------

MESSAGE_BYTES_PER_S = 2.5e9
"""Of what a rank is sent while it sends as much, between ranks of one node: packed, sent and
unpacked (MPICH: deriche)."""

MESSAGE_LATENCY_S = 5e-6
"""Until the first byte of a message is there, with what begins a phase (MPICH)."""

NETWORK_BYTES_PER_S = 1.25e9
"""Between nodes of which nobody has said how they are connected: 10 Gbit/s."""

NETWORK_LATENCY_S = 15e-6
"""From a node to a switch, or from there to a node: a message does both (TCP)."""

MESSAGE_STEP_S = 1e-6
"""What a rank does itself to begin to send or to receive a message (MPICH: some hundred
instructions)."""

CROWDED_MESSAGE_S = ((2.0, 35e-6), (4.0, 200e-6))
"""The mean latency of a short message where so many ranks share a core: those that wait look for
messages all the time (MPICH), and so keep others from coming (two pairs and four of a ping-pong on
two cores of an AMD EPYC 9004: the median is 2.4 and 3.4 µs)."""

PHASE_STEP_S = 1e-6
"""What a rank does itself to begin and end a phase: footprints, directories (jacobi-1d SMALL, one
thread, all passes left out: 0.5 µs a turn on one rank, 1.4 on two)."""

FIRST_TURN_S = 15e-6
"""What a rank does itself the first time that a phase with messages is begun: who has what, which
messages, the first of them on a way (jacobi-1d and mvt on two ranks, the fastest of 25 runs: 20 µs
in the first turn of a phase in place of 5 in those after it)."""

LONE_PHASE_STEP_S = 0.25e-6
"""The same where there is one rank: it looks up what it did the turn before (jacobi-1d SMALL on an
AMD EPYC 9004: 80 turns, 0.22 µs each beside what they compute)."""

FIRST_TIME_S = 15e-6
"""What a phase or task takes more, at most, the first time in a run: code and page tables come from
memory, branches are not known (PolyBench SMALL on an AMD EPYC 9004, one thread: 6 to 18 µs more
than modelled in atax, bicg, syr2k, covariance, correlation: 1.6 to 5.3 times the model, and 1.0 to
1.7 at MEDIUM; of 5, 10, 15 and 20 µs the one that told MEDIUM from SMALL well)."""

EAGER_BYTES = 1 << 16
"""A message of at most so much is sent before its receiver is ready for it (MPICH, shared memory:
16 to 64 KiB by version); a longer one waits until its receive is posted."""

MOST_ETHERNET_BYTES_PER_S = 50e9
"""A link that is sold as 400 Gbit/s. Where somebody writes more bytes, bits were probably meant."""

# -- devices ---------------------------------------------------------------------------------------

HOST_LINK_BYTES_PER_S = 25e9
"""Between a host's pinned memory and its GPU, each way: PCIe 4.0 × 16 (NVIDIA's data sheets say 32,
copies reach some 25)."""

HOST_LINK_LATENCY_S = 8e-6
"""Until such a copy, begun in a queue, has moved its first byte: taken to be two launches."""

LAUNCH_STEP_S = 4e-6
"""What a rank does itself to launch a kernel (NVIDIA H200: 3.8 µs, `kernels/results/h200.json`)."""

REACHED_OF_GPU_MEMORY = 0.88
"""The part of a GPU's memory bandwidth, as data sheets have it, that streams reach (NVIDIA H200: a
copy within it moves 4.22 of 4.8 TB/s; axpy, scale, exp and jacobi of two dimensions 4.1 to 4.3;
`kernels/results/h200.json`)."""

GPU_CACHE_BYTES_PER_FLOP = 0.93
"""What all threads load from the caches nearest to them in the time of an operation on f64 at the
peak: 128 bytes a cycle of each multiprocessor beside 64 multiply-adds are 1. Products whose threads
load both factors for each multiply-add reach 28 (f32) and 32 TB/s (f64) on an H200 of 33.5 TFLOP/s
(`kernels/results/h200.json`)."""

GPU_LINE_BYTES = 128
"""Of a GPU's memory, that a row of threads loads at once where it begins at one: f32 in three
dimensions has 0.75 of an H200's copy bandwidth then, and 0.65 from an element behind."""

# -- threads: what is done while they wake and meet, which takes two to five µs (libomp, awake) ----

THREADS_MEET_S = 3e-6
"""Until threads that are awake have begun together, and until the last of them is done."""

ADDITIONS_WORTH_THREADS = 200_000
"""Operations (in additions, `weights.py`) from which on threads share a nest: some twenty µs. Half
of the arrays then come from the cache of a core that had all of them (trisolv LARGE: 0.91 of the
time from there on)."""

TERMS_WHILE_THREADS_MEET = 1 << 14
"""Of a sum: a few microseconds."""

BYTES_WHILE_THREADS_MEET = 1 << 17
"""Of arrays in a cache: a few microseconds, and not much more than what begins and ends a phase
(jacobi-1d: from 0.54 ms to 0.33)."""

BYTES_OF_A_SHORT_STEP = 1 << 19
"""Loaded and stored in some ten microseconds: what begins and ends phases is a good part of that
(jacobi-1d)."""

# -- the machine of DistIR's cost model, for `costs="distir"` alone (its repository's defaults) ----

DISTIR_FLOPS_PER_S = 1.4e13
"""Of a GPU (V100, f16)."""

DISTIR_BYTES_PER_S = 9e11
"""Of a GPU's memory."""

DISTIR_LAUNCH_S = 1e-5
"""Before each operation."""

DISTIR_LINK_BYTES_PER_S = 25 * 1.25e8
"""Between any two GPUs: 25 Gbit/s."""
