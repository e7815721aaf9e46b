/* The devices of a rank: memory of arrays there, boxes copied, launches, and what waits for what.
 *
 * A place is a rank's host memory or one of its devices; places 0 … ranks - 1 are the hosts, those
 * of devices come after them. An array lies on a device as it lies on the host: a box has the same
 * offsets in both, also where a device has memory for those granules of it alone that it uses. Its
 * memory is taken when it is first asked for, and free again after its last use
 * where that is known, else at the end of the run. Free blocks are kept, for arrays of that size and
 * for the next run; with them a device never holds more than arrays had there at once.
 *
 * The order between queues follows from what touches an array: a copy to a device waits for the
 * launches and copies that touch the array there, a launch for the copies to what it touches, a
 * copy from there for the launches. The host waits for nothing but what it says.
 *
 * A function that fails says why in `avial_device_why`; the run is over then.
 */
#ifndef AVIAL_PLACES_H
#define AVIAL_PLACES_H

#include <stdbool.h>
#include <stdint.h>

/* Weak: a program without devices is linked to none of this. */
#define AVIAL_DEVICE __attribute__((weak))

enum DriverCode { DRIVER_APART, DRIVER_NULL, DRIVER_CUDA };

/* Set by the engine before a run: the driver, and of the emulated device the seed. */
extern int64_t avial_driver AVIAL_DEVICE, avial_seed AVIAL_DEVICE;

/* Set by the engine once: machine code of kernels, by their names, for GPUs of that compute capability
 * and, unless it is exact, of higher ones with the same major number (CUDA C++ Programming Guide,
 * "Binary Compatibility"). Where a GPU takes none of a kernel's its PTX is loaded. */
typedef struct {
    const char *name, *cubin;
    int64_t capability, exact;
} KernelCubin;
extern const KernelCubin *avial_cubins AVIAL_DEVICE;
extern int64_t avial_cubin_count AVIAL_DEVICE;

/* Likewise: bytes that the next run takes at most on each device; 0: as many as there are. */
extern int64_t avial_memory_limit AVIAL_DEVICE;

/* Likewise: the last moment at which a device uses an array, for each device `avial_last_arrays` of
 * them; -1: it uses nothing of it. NULL: all are kept to the end of the run. */
extern const int64_t *avial_last_uses AVIAL_DEVICE;
extern int64_t avial_last_arrays AVIAL_DEVICE;

/* Likewise: what devices use of arrays that are mapped by granules: the number of the device, the
 * array, the first granule and one past the last of some in a row; ascending. */
extern const int64_t *avial_granules AVIAL_DEVICE;
extern int64_t avial_granule_runs AVIAL_DEVICE;

/* Begins a run of rank `rank` (-1: of a plan, which has no devices): the number of ranks and
 * `devices`, and which rank drives each. Opens those of this rank; what an earlier run had is given
 * back. */
AVIAL_DEVICE bool avial_places(int64_t ranks, int64_t rank, int64_t devices, const int64_t *driver);

/* The k-th array: dimensions, extents, bytes of an element, and where it lies on this host. */
AVIAL_DEVICE bool avial_place_array(int64_t array, int64_t dimensions, const int64_t *extents,
                                    int64_t itemsize, char *host);

/* Arrays of the caller's on devices, of the next run: there the array is at that address, which is
 * neither taken nor given back, and ready once the stream (0: nothing) has done what it was given.
 * keeps: before the run writes to it, what is there is saved on the device, for a run that fails. */
typedef struct {
    int64_t array, place, address, stream, keeps;
} GivenArray;
extern const GivenArray *avial_given AVIAL_DEVICE;
extern int64_t avial_given_count AVIAL_DEVICE;

/* After a run, whether the caller has all of its results: else what it has written to his arrays on
 * devices is undone. False where that cannot be. */
AVIAL_DEVICE bool avial_settle(bool whole);

/* That moment is over, and all before it. */
AVIAL_DEVICE void avial_passed(int64_t moment);

/* Bytes that are free on that device of this rank, those of kept blocks among them, and all that it
 * has; INT64_MAX where that is not limited. */
AVIAL_DEVICE int64_t avial_room(int64_t place, int64_t *total);

/* The most bytes that this run, or the last one, has taken there. */
AVIAL_DEVICE int64_t avial_most_taken(int64_t place);

/* Gives back what is kept for the next run. */
AVIAL_DEVICE void avial_places_drop(void);

/* Where the element of the array lies on the place that is at `host` on the host; NULL: no memory. */
AVIAL_DEVICE char *avial_at(int64_t place, int64_t array, char *host);

/* Where an array is for a launch that is given it and touches nothing of it, which takes no memory;
 * nobody may look there. */
enum { NOWHERE = 4096 };

/* Puts the copy of that box (first elements, then one past the last) between two places of this rank
 * into a queue. */
AVIAL_DEVICE bool avial_copy_box(int64_t from, int64_t to, int64_t array, const int64_t *box);

/* Room for what goes from a device to other ranks, or comes from them: plain memory, never mapped by
 * granules, of the device where MPI takes such (`avial_direct`) and there is some, else of the host. */
typedef struct Stage Stage;
extern int64_t avial_direct AVIAL_DEVICE; /* set by the engine before a run */
enum { STAGE_SLOTS = 4 };                 /* parts of it that are used one by one */

/* One that nobody uses, of at least `bytes`, which is the caller's from now on; NULL: no memory. */
AVIAL_DEVICE Stage *avial_stage(int64_t place, int64_t bytes);
AVIAL_DEVICE void avial_stage_free(Stage *stage);

/* Where MPI is to read it, or to write. */
AVIAL_DEVICE char *avial_stage_memory(const Stage *stage);

/* Puts the copy of `count` runs of `run_bytes` into a queue: in the array `offset` bytes from where it
 * begins and `step` apart, in the stage from `at` on without gaps; from the array (out), or to it. */
typedef struct {
    int64_t array, offset, step, count, run_bytes;
} StageRuns;
AVIAL_DEVICE bool avial_stage_runs(Stage *stage, int64_t at, const StageRuns *runs, bool out);

/* What was put into queues of that slot so far is to be waited for by the second. */
AVIAL_DEVICE void avial_stage_mark(Stage *stage, int64_t slot, bool out);
AVIAL_DEVICE bool avial_stage_wait(Stage *stage, int64_t slot);

/* The next launch on that place touches the array. */
AVIAL_DEVICE bool avial_touch(int64_t place, int64_t array, int64_t writes);

/* What is to run on a device. `emulated`: the program's function that does it, for emulated devices;
 * it is handed the arguments. sizes: blocks in x, y and z, threads of a block, and the bytes that
 * these share; NULL for one thread. image: PTX or a cubin with the kernel `name`, whose k-th argument
 * is `offsets[k]` bytes into the arguments; NULL where there is none, and then the name says why.
 * Where no emulated device does it, `emulated` is NULL, and behind the end of the name follows why. */
typedef struct {
    void (*emulated)(void *);
    const int64_t *sizes;
    const char *image, *name;
    const int64_t *offsets;
    int64_t arguments;
} DeviceKernel;

/* Launches it on the place, with `bytes` of arguments that it is handed a copy of; after
 * `avial_touch` of all that it touches. */
AVIAL_DEVICE bool avial_launch_at(int64_t place, const DeviceKernel *kernel, const void *data,
                                  int64_t bytes, int64_t tag);

/* Calls the function with a launch's tag, and when it began and ended (ns of CLOCK_MONOTONIC), once
 * it ran; of devices that tell it. */
AVIAL_DEVICE void avial_on_launch(void (*ran)(int64_t tag, int64_t began_ns, int64_t ended_ns));

/* Waits until what was put into queues so far has read (false), or written (true), the host's
 * memory. */
AVIAL_DEVICE bool avial_host_waits(bool written);

/* Waits for all; keeps memory and devices for the next run, or after a failure, whose reason stays,
 * gives them back. */
AVIAL_DEVICE bool avial_places_end(void);

/* For programs whose steps are known before they run. What fails is in `avial_device_failed`, and
 * nothing is launched or copied from then on; the step in which it failed, -1 before the first; and,
 * for all programs, the place of the device. */
enum DeviceFailure { DEVICE_WELL, DEVICE_FAILED, DEVICE_NO_MEMORY };
extern int64_t avial_device_failed AVIAL_DEVICE, avial_device_step AVIAL_DEVICE,
    avial_device_place AVIAL_DEVICE;

/* When each launch ran: two words for each step, ns of CLOCK_MONOTONIC; where it is not NULL. */
extern int64_t *avial_ran AVIAL_DEVICE;

/* The next launches are those of the step, on the place; they use the array. */
AVIAL_DEVICE void avial_step_on(int64_t place, int64_t step);
AVIAL_DEVICE void avial_step_uses(int64_t array);

/* `avial_copy_box`, and the host's memory is free to be used again: what came there is there. */
AVIAL_DEVICE void avial_step_copy(int64_t from, int64_t to, int64_t array, const int64_t *box);

/* A box on its way to that place from a device of rank `peer`, or from it to there: the message of that
 * number begins; then it is over. What a device could not do goes on its way undefined. */
AVIAL_DEVICE void avial_step_post(int64_t number, int64_t place, int64_t array, int64_t peer,
                                  int64_t tag, const int64_t *box);
AVIAL_DEVICE void avial_step_send(int64_t number, int64_t place, int64_t array, int64_t peer,
                                  int64_t tag, const int64_t *box);
AVIAL_DEVICE void avial_step_received(int64_t number);
AVIAL_DEVICE void avial_step_sent(int64_t number);

/* Why the last call failed; and in numbers, of this run: copies and their bytes by pair of places. */
AVIAL_DEVICE const char *avial_device_why(void);
AVIAL_DEVICE int64_t avial_copied(int64_t from, int64_t to, int64_t *bytes);

#endif
