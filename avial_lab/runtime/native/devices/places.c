#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ownership/mpi_calls.h"
#include "driver.h"

/* Of a step's message: in at most so many calls of MPI, which counts in 32 bits. */
enum { MOST_REQUESTS = 64, LARGEST_CALL = 1 << 30 };

/* An array on a device: its memory, 0 before it has any, and the last that touched it. */
typedef struct {
    uint64_t address;
    int64_t bytes, span, count, *runs; /* as of a block */
    Event_ written, read; /* the last launch that writes it, and that touches it */
    Event_ in, out;       /* by copies */
    bool touched, writes; /* by the next launch */
    bool given, over;     /* its memory is the caller's; its last use was */
    bool keeps;           /* what the caller has there is to be saved before it is written */
} Lying;

/* Memory of a device that no array has, and what touched it last, as above. bytes: that it takes.
 * span: of its addresses where only some granules have memory, `count` times from one to before
 * another one; 0 where all is there. */
typedef struct {
    uint64_t address;
    int64_t bytes, span, count, *runs;
    Event_ written, read, in, out;
} Block;

/* A kernel that a device has found in an image, both by their addresses. */
typedef struct {
    const char *image, *name;
    void *kernel;
} Found;

/* A device that is open, in a run or between two of them. */
typedef struct {
    void *device; /* NULL of another rank's */
    int64_t number;
    Found *found;
    int64_t kernels;
    Block *blocks; /* that are kept */
    int64_t block_count, kept_bytes;
    struct Stage **stages;
    int64_t stage_count;
} Opened;

/* On a device: `there` is its memory, `here` the host's, which may be pinned; one of them is NULL.
 * marked: the last that each slot is to wait for. */
struct Stage {
    int64_t place, bytes;
    uint64_t there;
    char *here;
    bool pinned, used;
    Event_ marked[STAGE_SLOTS];
};

typedef struct {
    Opened opened;
    void *device; /* the same */
    Lying *arrays; /* `room` of them */
    Event_ reads, fills; /* the last copy that reads, or writes, the host's memory */
    int64_t used; /* bytes that arrays have */
} Place;

typedef struct {
    int64_t dims, extents[MAX_DIMS], itemsize;
    char *host;
    bool pinned;
    bool used; /* by the step at hand */
} Shape;

enum { LEAST_PINNED = 1 << 20 }; /* bytes; it takes some 40 us for each of them */

int64_t avial_driver, avial_seed, avial_direct;
const KernelCubin *avial_cubins;
int64_t avial_cubin_count;
const GivenArray *avial_given;
int64_t avial_given_count;

static struct {
    const Driver *driver;
    int64_t ranks, rank, devices;
    Place *places; /* of the devices */
    Shape *shapes;
    int64_t arrays, room;
    struct {
        int64_t copies, bytes;
    } *copied; /* by pair of places */
} here;

/* Between runs: devices, all of that driver; and how many bytes each place of the last run took. */
static struct {
    const Driver *driver;
    Opened *devices;
    int64_t count;
} kept;
static struct {
    int64_t *rows, count, ranks;
} most;

/* What arrays of the caller's had on devices before this run wrote to them, until the caller says how
 * it ended. lost: it could not be put back. */
typedef struct {
    void *device;
    uint64_t address, copy;
    int64_t bytes;
} Saved;
static struct {
    const Driver *driver;
    Saved *rows;
    int64_t count;
    bool lost;
} saved;

int64_t avial_memory_limit, avial_last_arrays;
const int64_t *avial_last_uses, *avial_granules;
int64_t avial_granule_runs;

/* Of the program: what MPI is asked with, and the first error. */
extern int64_t avial_comm AVIAL_DEVICE, avial_byte AVIAL_DEVICE, avial_status_ignore AVIAL_DEVICE,
    avial_error AVIAL_DEVICE;

static const char *places_said = "";
const char *avial_device_why(void) { return places_said; }

int64_t avial_device_failed, avial_device_step = -1, avial_device_place = -1;
int64_t *avial_ran;

static struct {
    int64_t place, number;
} step; /* of the launches at hand */

/* A step of launches marks the journal after it asked for memory. */
static int64_t step_at_hand(void)
{
    int64_t marked = &avial_journal && avial_journal ? *avial_journal : -1;
    return marked > step.number ? marked : step.number;
}

static bool refused(const char *why)
{
    places_said = why;
    if (avial_device_failed) return false;
    avial_device_failed = DEVICE_FAILED;
    avial_device_step = step_at_hand();
    return false;
}

static bool went(bool well) { return well || refused(here.driver->why()); }

static const Driver *chosen(void)
{
    if (avial_driver == DRIVER_NULL) return &null_driver;
    return avial_driver == DRIVER_CUDA ? &cuda_driver : &apart_driver;
}

/* One of this rank's, which is what fails next if anything does; else NULL. */
static Place *place_of(int64_t place)
{
    int64_t k = place - here.ranks;
    if (k < 0 || k >= here.devices || !here.places[k].device) return NULL;
    if (!avial_device_failed) avial_device_place = place;
    return &here.places[k];
}

/* A device of this rank. */
static void *own_device(void)
{
    for (int64_t k = 0; k < here.devices; k++)
        if (here.places[k].device) return here.places[k].device;
    return NULL;
}

/* Memory --------------------------------------------------------------------------------------- */

static int64_t bytes_of_shape(const Shape *s)
{
    int64_t bytes = s->itemsize;
    for (int64_t d = 0; d < s->dims; d++) bytes *= s->extents[d];
    return bytes;
}

/* The array's memory is kept, for others of its size. */
static void free_array(Place *p, int64_t array)
{
    Lying *a = &p->arrays[array];
    Opened *o = &p->opened;
    if (!a->address || a->given) return;
    Block *blocks = realloc(o->blocks, (size_t)(o->block_count + 1) * sizeof *blocks);
    if (!blocks) return; /* it stays the array's */
    o->blocks = blocks;
    blocks[o->block_count++] = (Block){a->address, a->bytes, a->span, a->count, a->runs,
                                       a->written, a->read, a->in, a->out};
    o->kept_bytes += a->bytes;
    p->used -= a->bytes;
    *a = (Lying){.over = true};
}

void avial_passed(int64_t moment)
{
    if (!avial_last_uses || avial_device_failed) return;
    int64_t arrays = here.arrays < avial_last_arrays ? here.arrays : avial_last_arrays;
    for (int64_t k = 0; k < here.devices; k++)
        for (int64_t n = 0; here.places[k].device && n < arrays; n++) {
            int64_t last = avial_last_uses[k * avial_last_arrays + n];
            if (last >= 0 && last <= moment) free_array(&here.places[k], n);
        }
}

/* Gives a kept block back, once what touched it is done. */
static bool drop_block(Place *p)
{
    const Driver *d = here.driver;
    Opened *o = &p->opened;
    Block b = o->blocks[--o->block_count];
    o->kept_bytes -= b.bytes;
    free(b.runs);
    return went(d->synchronise(p->device, b.written) && d->synchronise(p->device, b.read) &&
                d->synchronise(p->device, b.in) && d->synchronise(p->device, b.out) &&
                d->release(p->device, b.address));
}

static int64_t *most_of(const Place *p) { return &most.rows[p - here.places]; }

int64_t avial_most_taken(int64_t place)
{
    int64_t k = place - most.ranks;
    return k >= 0 && k < most.count ? most.rows[k] : 0;
}

static int64_t room_on(const Place *p, int64_t *total)
{
    Limits limits = {.memory_bytes = INT64_MAX, .free_bytes = INT64_MAX};
    here.driver->limits(p->device, &limits);
    int64_t available = limits.free_bytes;
    if (available < INT64_MAX) available += p->opened.kept_bytes;
    *total = limits.memory_bytes;
    if (avial_memory_limit && avial_memory_limit < *total) *total = avial_memory_limit;
    if (avial_memory_limit && avial_memory_limit - p->used < available)
        available = avial_memory_limit - p->used;
    return available;
}

int64_t avial_room(int64_t place, int64_t *total)
{
    const Place *p = place_of(place);
    *total = INT64_MAX;
    return p ? room_on(p, total) : INT64_MAX;
}

/* What the array needs there: the granules that are used, where that is known, else all of it. */
static bool needs(const Place *p, int64_t array, Block *to)
{
    int64_t device = p - here.places, whole = bytes_of_shape(&here.shapes[array]), first = 0;
    *to = (Block){.bytes = whole};
    if (!here.driver->maps || !here.driver->maps(p->device)) return true;
    if (!avial_last_uses || array >= avial_last_arrays) return true;
    while (first < avial_granule_runs && (avial_granules[4 * first] != device ||
                                          avial_granules[4 * first + 1] != array))
        first++;
    const int64_t *rows = avial_granules + 4 * first;
    while (first + to->count < avial_granule_runs && rows[4 * to->count] == device &&
           rows[4 * to->count + 1] == array)
        to->count++;
    if (!to->count && avial_last_uses[device * avial_last_arrays + array] >= 0) return true;
    to->span = whole > 0 ? whole : 1;
    to->bytes = 0;
    to->runs = calloc((size_t)to->count + 1, 2 * sizeof *to->runs);
    if (!to->runs) return refused("out of memory for devices");
    for (int64_t k = 0; k < to->count; k++) {
        to->runs[2 * k] = rows[4 * k + 2], to->runs[2 * k + 1] = rows[4 * k + 3];
        to->bytes += (rows[4 * k + 3] - rows[4 * k + 2]) * GRANULE;
    }
    return true;
}

static bool alike(const Block *a, const Block *b)
{
    return a->bytes == b->bytes && a->span == b->span && a->count == b->count &&
           (!a->count || !memcmp(a->runs, b->runs, (size_t)a->count * 2 * sizeof *a->runs));
}

static void give(Lying *a, const Block *b)
{
    *a = (Lying){.address = b->address, .bytes = b->bytes, .span = b->span, .count = b->count,
                 .runs = b->runs, .written = b->written, .read = b->read, .in = b->in, .out = b->out,
                 .touched = a->touched, .writes = a->writes};
}

/* A kept block like that for the array; what was done with it comes first. */
static bool take_kept(Place *p, Lying *a, const Block *wanted)
{
    Opened *o = &p->opened;
    int64_t k = 0;
    while (k < o->block_count && !alike(&o->blocks[k], wanted)) k++;
    if (k == o->block_count) return false;
    give(a, &o->blocks[k]);
    o->kept_bytes -= o->blocks[k].bytes;
    o->blocks[k] = o->blocks[--o->block_count];
    return true;
}

/* Nobody may find there what another array had. */
static bool forget(Place *p, Lying *a)
{
    const Driver *d = here.driver;
    if (!d->forget) return true;
    if (!went(d->wait(p->device, QUEUE_IN, p->device, a->read)) ||
        !went(d->wait(p->device, QUEUE_IN, p->device, a->out)))
        return false;
    if (!a->span && !went(d->forget(p->device, QUEUE_IN, a->address, a->bytes))) return false;
    for (int64_t k = 0; k < a->count; k++)
        if (!went(d->forget(p->device, QUEUE_IN, a->address + (uint64_t)(a->runs[2 * k] * GRANULE),
                            (a->runs[2 * k + 1] - a->runs[2 * k]) * GRANULE)))
            return false;
    a->in = d->record(p->device, QUEUE_IN);
    return true;
}

static uint64_t taken(const Place *p, const Block *wanted)
{
    const Driver *d = here.driver;
    if (!wanted->span) return d->allocate(p->device, wanted->bytes);
    return d->reserve(p->device, wanted->span, wanted->runs, wanted->count);
}

/* New memory for the array: kept blocks are given back where the device would have more than arrays
 * ever had there at once, or where there is no other. 0: there is none. */
static uint64_t allocated(Place *p, const Block *wanted)
{
    Opened *o = &p->opened;
    int64_t needed = p->used + wanted->bytes, bound = *most_of(p) > needed ? *most_of(p) : needed;
    while (o->block_count && needed + o->kept_bytes > bound)
        if (!drop_block(p)) return 0;
    bool limited = avial_memory_limit && here.driver != &apart_driver; /* which has so much */
    if (limited && needed > avial_memory_limit) {
        refused("the limit leaves no memory");
        return 0;
    }
    uint64_t address = taken(p, wanted);
    while (!address && o->block_count && drop_block(p)) address = taken(p, wanted);
    return address;
}

/* What the array would take, what is free, and what is there already. */
static void no_memory(Place *p, int64_t array, const char *why)
{
    static char said[1024];
    int64_t there = 0, total, available = room_on(p, &total);
    const Lying *a = &p->arrays[array];
    size_t n = (size_t)snprintf(said, sizeof said, "%s: array %lld takes %lld bytes on gpu%lld", why,
                                (long long)array, (long long)a->bytes,
                                (long long)(p - here.places));
    if (n < sizeof said && available < INT64_MAX)
        n += (size_t)snprintf(said + n, sizeof said - n, ", and %lld of %lld are free",
                              (long long)available, (long long)total);
    for (int64_t k = 0; k < here.arrays && n < sizeof said; k++)
        if (p->arrays[k].address && !p->arrays[k].given)
            n += (size_t)snprintf(said + n, sizeof said - n, "%s array %lld with %lld bytes",
                                  there++ ? "," : "; there are already", (long long)k,
                                  (long long)p->arrays[k].bytes);
    refused(said);
    avial_device_failed = DEVICE_NO_MEMORY;
}

static void count_taken(Place *p, int64_t bytes)
{
    p->used += bytes;
    if (p->used > *most_of(p)) *most_of(p) = p->used;
}

/* Where the array begins on that device. */
static uint64_t memory_on(Place *p, int64_t array)
{
    Lying *a = &p->arrays[array];
    Block wanted;
    if (a->address) return a->address;
    if (a->over) {
        refused("an array is used on a device after its last use, which is a fault in avial_lab");
        return 0;
    }
    free(a->runs), a->runs = NULL; /* of a try before */
    if (!needs(p, array, &wanted)) return 0;
    if (take_kept(p, a, &wanted)) {
        free(wanted.runs);
        if (!forget(p, a)) return 0;
    } else {
        wanted.address = allocated(p, &wanted);
        if (!wanted.address && wanted.span && !avial_device_failed) { /* a driver that maps none */
            free(wanted.runs);
            wanted = (Block){.bytes = bytes_of_shape(&here.shapes[array])};
            wanted.address = allocated(p, &wanted);
        }
        give(a, &wanted);
        if (!a->address) {
            bool limited = avial_device_failed; /* by us */
            no_memory(p, array, limited ? places_said : here.driver->why());
            return 0;
        }
    }
    count_taken(p, a->bytes);
    return a->address;
}

/* The caller's arrays --------------------------------------------------------------------------- */

static void forget_saved(void)
{
    free(saved.rows);
    memset(&saved, 0, sizeof saved);
}

static bool note_saved(Saved one)
{
    Saved *rows = realloc(saved.rows, (size_t)(saved.count + 1) * sizeof *rows);
    if (!rows) return refused("out of memory for devices");
    saved.rows = rows;
    saved.driver = here.driver;
    rows[saved.count++] = one;
    return true;
}

/* Before the run writes to it the first time: a run that fails puts back what was there. */
static bool save(Place *p, int64_t array)
{
    const Driver *d = here.driver;
    Lying *a = &p->arrays[array];
    Block wanted = {.bytes = bytes_of_shape(&here.shapes[array])};
    if (!a->keeps) return true;
    a->keeps = false;
    if (!wanted.bytes) return true;
    uint64_t copy = allocated(p, &wanted);
    if (!copy) {
        a->bytes = wanted.bytes;
        no_memory(p, array, avial_device_failed ? places_said : d->why());
        return false;
    }
    count_taken(p, wanted.bytes);
    BoxCopy whole = {.kind = COPY_WITHIN, .device = copy, .source = a->address,
                     .run_bytes = wanted.bytes};
    if (!note_saved((Saved){p->device, a->address, copy, wanted.bytes}) ||
        !went(d->copy(p->device, QUEUE_OUT, &whole)))
        return false;
    a->out = d->record(p->device, QUEUE_OUT);
    return true;
}

static void drop_saved(void)
{
    for (int64_t k = 0; k < saved.count; k++)
        saved.driver->release(saved.rows[k].device, saved.rows[k].copy);
    saved.count = 0;
}

/* What the run has written to the caller's arrays is undone, as far as the devices still answer. */
static void put_back(void)
{
    const Driver *d = saved.driver;
    for (int64_t k = 0; k < saved.count; k++) {
        Saved s = saved.rows[k];
        BoxCopy whole = {.kind = COPY_WITHIN, .device = s.address, .source = s.copy,
                         .run_bytes = s.bytes};
        bool well = d->finish(s.device) && d->copy(s.device, QUEUE_IN, &whole) && d->finish(s.device);
        saved.lost |= !well;
    }
    drop_saved();
}

bool avial_settle(bool whole)
{
    if (whole) drop_saved();
    else put_back();
    bool well = !saved.lost;
    forget_saved();
    return well;
}

/* Devices -------------------------------------------------------------------------------------- */

static void drop_stages(const Driver *driver, Opened *opened)
{
    for (int64_t k = 0; k < opened->stage_count; k++) {
        Stage *s = opened->stages[k];
        if (s->pinned) driver->unpin(opened->device, s->here);
        if (s->there) driver->release(opened->device, s->there);
        free(s->here), free(s);
    }
    free(opened->stages);
    opened->stages = NULL;
    opened->stage_count = 0;
}

static void close_device(const Driver *driver, Opened *opened)
{
    if (opened->device && opened->stage_count && driver->finish(opened->device))
        drop_stages(driver, opened);
    if (opened->device) driver->close(opened->device); /* its memory, too */
    for (int64_t k = 0; k < opened->block_count; k++) free(opened->blocks[k].runs);
    free(opened->found), free(opened->blocks);
}

void avial_places_drop(void)
{
    for (int64_t k = 0; k < kept.count; k++) close_device(kept.driver, &kept.devices[k]);
    free(kept.devices);
    memset(&kept, 0, sizeof kept);
}

/* For the next run, with the memory of its arrays. */
static bool keep_device(Place *p)
{
    Opened *devices = realloc(kept.devices, (size_t)(kept.count + 1) * sizeof *devices);
    if (!devices) return false;
    kept.devices = devices;
    for (int64_t k = 0; k < here.arrays; k++) free_array(p, k);
    kept.driver = here.driver;
    devices[kept.count++] = p->opened;
    return true;
}

static void give_back(bool keep)
{
    for (int64_t k = 0; k < here.arrays; k++)
        if (here.shapes[k].pinned) here.driver->unpin(own_device(), here.shapes[k].host);
    for (int64_t k = 0; k < here.devices; k++) {
        Place *p = &here.places[k];
        if (!p->device || !keep || !keep_device(p)) close_device(here.driver, &p->opened);
        for (int64_t n = 0; p->arrays && n < here.arrays; n++) free(p->arrays[n].runs);
        free(p->arrays);
    }
    free(here.places), free(here.shapes), free(here.copied);
    memset(&here, 0, sizeof here);
}

/* One that is kept, or opened now. */
static bool open_device(Place *p, int64_t number)
{
    for (int64_t k = 0; k < kept.count; k++)
        if (kept.devices[k].number == number) {
            p->opened = kept.devices[k];
            p->device = p->opened.device;
            kept.devices[k] = kept.devices[--kept.count];
            if (here.driver->again) here.driver->again(p->device);
            return true;
        }
    p->opened = (Opened){.device = here.driver->open(number), .number = number};
    p->device = p->opened.device;
    return went(p->device);
}

bool avial_places(int64_t ranks, int64_t rank, int64_t devices, const int64_t *driver)
{
    give_back(false);
    forget_saved(); /* nobody asked how that run ended */
    avial_device_failed = DEVICE_WELL;
    avial_device_step = step.number = avial_device_place = -1;
    avial_apart_seed = (uint64_t)avial_seed;
    avial_apart_memory = avial_memory_limit;
    here.driver = chosen();
    if (kept.driver != here.driver) avial_places_drop();
    here.ranks = ranks;
    here.rank = rank;
    here.devices = devices;
    here.places = calloc((size_t)devices + 1, sizeof *here.places);
    size_t pairs = (size_t)((ranks + devices) * (ranks + devices));
    here.copied = calloc(pairs, sizeof *here.copied);
    free(most.rows);
    most.rows = calloc((size_t)devices + 1, sizeof *most.rows);
    most.count = most.rows ? devices : 0;
    most.ranks = ranks;
    if (!here.places || !here.copied || !most.rows) {
        here.devices = 0;
        return refused("out of memory for devices");
    }
    int64_t available = here.driver->count();
    for (int64_t k = 0; k < devices; k++) {
        if (driver[k] != rank) continue;
        int64_t number = available > 0 ? k % available : k; /* ranks side by side take others */
        if (!open_device(&here.places[k], number)) return false;
    }
    return true;
}

/* The array is the caller's own memory on a device. */
static bool take_given(const GivenArray *given)
{
    Place *p = place_of(given->place);
    if (!p) return refused("an array lies on a device that this rank does not drive");
    const Driver *d = here.driver;
    int64_t bytes = bytes_of_shape(&here.shapes[given->array]);
    if (!d->holds(p->device, (uint64_t)given->address, bytes) ||
        (given->stream && !d->after(p->device, (uint64_t)given->stream))) {
        static char said[512];
        snprintf(said, sizeof said, "array %lld cannot be used where it is: %s",
                 (long long)given->array, d->why());
        return refused(said);
    }
    p->arrays[given->array].address = (uint64_t)given->address;
    p->arrays[given->array].given = true;
    p->arrays[given->array].keeps = given->keeps;
    return true;
}

bool avial_place_array(int64_t array, int64_t dimensions, const int64_t *extents, int64_t itemsize,
                       char *host)
{
    if (array >= here.room) {
        int64_t room = array < 8 ? 16 : 2 * array;
        Shape *shapes = realloc(here.shapes, (size_t)room * sizeof *shapes);
        if (!shapes) return refused("out of memory for devices");
        here.shapes = shapes;
        for (int64_t k = 0; k < here.devices; k++) {
            Lying *arrays = realloc(here.places[k].arrays, (size_t)room * sizeof *arrays);
            if (!arrays) return refused("out of memory for devices");
            memset(arrays + here.room, 0, (size_t)(room - here.room) * sizeof *arrays);
            here.places[k].arrays = arrays;
        }
        here.room = room;
    }
    Shape *s = &here.shapes[array];
    *s = (Shape){.dims = dimensions, .itemsize = itemsize, .host = host};
    memcpy(s->extents, extents, (size_t)dimensions * 8);
    if (array >= here.arrays) here.arrays = array + 1;
    for (int64_t k = 0; k < avial_given_count; k++)
        if (avial_given[k].array == array) return take_given(&avial_given[k]);
    void *device = here.driver->pin ? own_device() : NULL;
    int64_t bytes = bytes_of_shape(s);
    s->pinned = device && bytes >= LEAST_PINNED && here.driver->pin(device, host, bytes);
    return true;
}

char *avial_at(int64_t place, int64_t array, char *host)
{
    Place *p = place_of(place);
    if (!p) return host;
    uint64_t begin = memory_on(p, array);
    return begin ? (char *)(uintptr_t)begin + (host - here.shapes[array].host) : NULL;
}

/* Copies --------------------------------------------------------------------------------------- */

static int64_t box_bytes(const Shape *s, const int64_t *box)
{
    int64_t bytes = s->itemsize;
    for (int64_t d = 0; d < s->dims; d++) bytes *= box[s->dims + d] - box[d];
    return bytes;
}

/* The box as runs of bytes, whose offset from where the array begins is returned. */
static int64_t runs_of(const Shape *s, const int64_t *box, BoxCopy *copy)
{
    int64_t stride = s->itemsize, offset = 0, d = s->dims - 1;
    copy->run_bytes = s->itemsize;
    copy->dims = 0;
    for (bool whole = true; d >= 0; d--) {
        int64_t extent = box[s->dims + d] - box[d];
        offset += box[d] * stride;
        if (whole) copy->run_bytes *= extent;
        else {
            copy->count[copy->dims] = extent;
            copy->here[copy->dims] = copy->there[copy->dims] = stride;
            copy->dims++;
        }
        whole = whole && extent == s->extents[d];
        stride *= s->extents[d];
    }
    return offset;
}

static bool wait_for(Place *p, enum Queue queue, Event_ event)
{
    return went(here.driver->wait(p->device, queue, p->device, event));
}

/* Waits for the copies of all devices of this rank that write the host's memory, or read it. */
static bool wait_for_host(Place *p, enum Queue queue, bool written)
{
    for (int64_t k = 0; k < here.devices; k++) {
        Place *other = &here.places[k];
        if (!other->device) continue;
        Event_ event = written ? other->fills : other->reads;
        if (!went(here.driver->wait(p->device, queue, other->device, event))) return false;
    }
    return true;
}

static bool copy_in(Place *p, Lying *a, BoxCopy *copy)
{
    if (!wait_for_host(p, QUEUE_IN, true) || !wait_for(p, QUEUE_IN, a->read) ||
        !wait_for(p, QUEUE_IN, a->out) || !went(here.driver->copy(p->device, QUEUE_IN, copy)))
        return false;
    a->in = p->reads = here.driver->record(p->device, QUEUE_IN);
    return true;
}

static bool copy_out(Place *p, Lying *a, BoxCopy *copy)
{
    if (!wait_for_host(p, QUEUE_OUT, false) || !wait_for(p, QUEUE_OUT, a->written) ||
        !wait_for(p, QUEUE_OUT, a->in) || !went(here.driver->copy(p->device, QUEUE_OUT, copy)))
        return false;
    a->out = p->fills = here.driver->record(p->device, QUEUE_OUT);
    return true;
}

/* Between two devices: what is read there counts as copied out, and what was written as copied
 * in. */
static bool copy_across(Place *from, Lying *source, Place *to, Lying *a, BoxCopy *copy)
{
    const Driver *d = here.driver;
    if (!went(d->wait(to->device, QUEUE_IN, from->device, source->written)) ||
        !went(d->wait(to->device, QUEUE_IN, from->device, source->in)) ||
        !wait_for(to, QUEUE_IN, a->read) ||
        !wait_for(to, QUEUE_IN, a->out) || !went(d->copy(to->device, QUEUE_IN, copy)))
        return false;
    a->in = d->record(to->device, QUEUE_IN);
    if (!went(d->wait(from->device, QUEUE_OUT, to->device, a->in))) return false;
    source->out = d->record(from->device, QUEUE_OUT);
    return true;
}

bool avial_copy_box(int64_t from, int64_t to, int64_t array, const int64_t *box)
{
    const Shape *s = &here.shapes[array];
    Place *source = place_of(from), *dest = place_of(to);
    BoxCopy copy = {.host = s->host};
    int64_t offset = runs_of(s, box, &copy);
    if (!source && !dest) return refused("a copy between two hosts is a message");
    Place *own = dest ? dest : source;
    copy.kind = !dest ? COPY_OUT : source ? COPY_WITHIN : COPY_IN;
    uint64_t begin = memory_on(own, array);
    if (!begin) return false;
    copy.device = begin + (uint64_t)offset;
    copy.host += offset;
    if (copy.kind == COPY_WITHIN) {
        copy.source = memory_on(source, array);
        if (!copy.source) return false;
        copy.source += (uint64_t)offset;
    }
    int64_t pair = from * (here.ranks + here.devices) + to;
    here.copied[pair].copies++;
    here.copied[pair].bytes += box_bytes(s, box);
    Lying *a = &own->arrays[array];
    if (copy.kind == COPY_OUT) return copy_out(own, a, &copy);
    if (!save(own, array)) return false;
    if (copy.kind == COPY_IN) return copy_in(own, a, &copy);
    return copy_across(source, &source->arrays[array], own, a, &copy);
}

int64_t avial_copied(int64_t from, int64_t to, int64_t *bytes)
{
    int64_t pair = from * (here.ranks + here.devices) + to;
    *bytes = here.copied[pair].bytes;
    return here.copied[pair].copies;
}

/* Between ranks --------------------------------------------------------------------------------- */

/* Memory for a new stage: the device's where MPI takes it; the host's where it does not, and where the
 * device has none to spare. Whoever is at the other end sees no difference. */
static bool take_stage(Place *p, Stage *s)
{
    const Driver *d = here.driver;
    if (avial_direct && !avial_memory_limit) s->there = d->allocate(p->device, s->bytes);
    if (s->there) return true;
    s->here = malloc((size_t)s->bytes);
    if (!s->here) return refused("out of memory for messages between devices");
    s->pinned = d->pin && d->pin(p->device, s->here, s->bytes);
    return true;
}

/* The smallest that is free and large enough, of the way that messages go in this run. */
static Stage *free_stage(const Opened *o, int64_t bytes)
{
    Stage *best = NULL;
    for (int64_t k = 0; k < o->stage_count; k++) {
        Stage *s = o->stages[k];
        bool fits = !s->used && s->bytes >= bytes && (s->here || avial_direct);
        if (fits && (!best || s->bytes < best->bytes)) best = s;
    }
    return best;
}

Stage *avial_stage(int64_t place, int64_t bytes)
{
    Place *p = place_of(place);
    if (!p) {
        refused("a message for a device that this rank does not drive");
        return NULL;
    }
    Opened *o = &p->opened;
    Stage *s = free_stage(o, bytes);
    if (!s) {
        Stage **more = realloc(o->stages, (size_t)(o->stage_count + 1) * sizeof *more);
        if (more) o->stages = more;
        s = more ? calloc(1, sizeof *s) : NULL;
        if (!s) {
            refused("out of memory for messages between devices");
            return NULL;
        }
        s->bytes = bytes;
        if (!take_stage(p, s)) {
            free(s);
            return NULL;
        }
        o->stages[o->stage_count++] = s;
    }
    s->place = place;
    s->used = true;
    for (int64_t k = 0; k < STAGE_SLOTS; k++)
        if (!avial_stage_wait(s, k)) return NULL;
    return s;
}

void avial_stage_free(Stage *stage) { stage->used = false; }

char *avial_stage_memory(const Stage *stage)
{
    return stage->there ? (char *)(uintptr_t)stage->there : stage->here;
}

/* How those runs are copied; false where the array has no memory. */
static bool staged_copy(Place *p, const Stage *s, int64_t at, const StageRuns *r, bool out,
                        BoxCopy *copy)
{
    uint64_t begin = memory_on(p, r->array), near = s->there + (uint64_t)at;
    if (!begin) return false;
    bool packs = s->there && out; /* the stage is written */
    int64_t apart = packs ? r->run_bytes : r->step, others = packs ? r->step : r->run_bytes;
    begin += (uint64_t)r->offset;
    *copy = (BoxCopy){
        .kind = s->there ? COPY_WITHIN : out ? COPY_OUT : COPY_IN,
        .host = s->here ? s->here + at : NULL,
        .device = packs ? near : begin,
        .source = packs ? begin : near,
        .run_bytes = r->run_bytes,
        .dims = r->count > 1,
        .count = {r->count},
        .here = {apart},
        .there = {others},
    };
    return true;
}

bool avial_stage_runs(Stage *stage, int64_t at, const StageRuns *runs, bool out)
{
    Place *p = place_of(stage->place);
    BoxCopy copy;
    enum Queue queue = out ? QUEUE_OUT : QUEUE_IN;
    if (!p || (!out && !save(p, runs->array))) return false;
    if (!staged_copy(p, stage, at, runs, out, &copy)) return false;
    Lying *a = &p->arrays[runs->array];
    if (!wait_for(p, queue, out ? a->written : a->read) ||
        !wait_for(p, queue, out ? a->in : a->out) || !went(here.driver->copy(p->device, queue, &copy)))
        return false;
    Event_ event = here.driver->record(p->device, queue);
    if (out) a->out = event;
    else a->in = event;
    return true;
}

void avial_stage_mark(Stage *stage, int64_t slot, bool out)
{
    Place *p = place_of(stage->place);
    if (p) stage->marked[slot] = here.driver->record(p->device, out ? QUEUE_OUT : QUEUE_IN);
}

bool avial_stage_wait(Stage *stage, int64_t slot)
{
    Place *p = place_of(stage->place);
    return p && went(here.driver->synchronise(p->device, stage->marked[slot]));
}

/* Launches ------------------------------------------------------------------------------------- */

bool avial_touch(int64_t place, int64_t array, int64_t writes)
{
    Place *p = place_of(place);
    if (!p) return refused("a launch on a place that this rank does not drive");
    if (writes && !save(p, array)) return false;
    p->arrays[array].touched = true;
    p->arrays[array].writes |= writes != 0;
    return true;
}

/* Machine code of the kernel that the device takes, the one for the highest capability; else NULL. */
static const char *cubin_for(const Place *p, const char *name)
{
    Limits limits = {.capability = 0};
    const KernelCubin *best = NULL;
    if (!avial_cubin_count || !here.driver->limits(p->device, &limits)) return NULL;
    for (int64_t k = 0; k < avial_cubin_count; k++) {
        const KernelCubin *c = &avial_cubins[k];
        bool same = c->capability == limits.capability;
        bool older = c->capability / 10 == limits.capability / 10 && c->capability < limits.capability;
        bool fits = same || (older && !c->exact);
        if (fits && (!best || c->capability > best->capability) && !strcmp(c->name, name)) best = c;
    }
    return best ? best->cubin : NULL;
}

static void *kernel_in(Place *p, const char *image, const char *name)
{
    void *module = here.driver->load(p->device, image);
    return module ? here.driver->kernel(p->device, module, name) : NULL;
}

/* The device's own kernel, which is loaded when it is launched first; NULL where there is none. */
static void *kernel_on(Place *p, const DeviceKernel *kernel)
{
    Opened *o = &p->opened;
    for (int64_t k = 0; k < o->kernels; k++)
        if (o->found[k].name == kernel->name && o->found[k].image == kernel->image)
            return o->found[k].kernel;
    if (!kernel->image || !kernel->image[0]) {
        refused(!kernel->image && kernel->name ? kernel->name
                                               : "what is to run on the device has no kernel that "
                                                 "it could load");
        return NULL;
    }
    Found *more = realloc(o->found, (size_t)(o->kernels + 1) * sizeof *more);
    if (!more) {
        refused("out of memory for kernels");
        return NULL;
    }
    o->found = more;
    const char *cubin = cubin_for(p, kernel->name);
    void *found = cubin ? kernel_in(p, cubin, kernel->name) : NULL;
    if (!found) found = kernel_in(p, kernel->image, kernel->name); /* an older driver takes PTX */
    if (went(found)) o->found[o->kernels++] = (Found){kernel->image, kernel->name, found};
    return found;
}

bool avial_launch_at(int64_t place, const DeviceKernel *kernel, const void *data, int64_t bytes,
                     int64_t tag)
{
    Place *p = place_of(place);
    if (!p) return refused("a launch on a place that this rank does not drive");
    for (int64_t k = 0; k < here.arrays; k++) {
        Lying *a = &p->arrays[k];
        if (!a->touched) continue;
        if (!wait_for(p, QUEUE_KERNELS, a->in)) return false;
        if (a->writes && !wait_for(p, QUEUE_KERNELS, a->out)) return false;
    }
    Launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .data = data, .bytes = bytes,
                     .offsets = kernel->offsets, .arguments = kernel->arguments, .tag = tag,
                     .step = step_at_hand()};
    if (kernel->sizes) {
        memcpy(launch.grid, kernel->sizes, sizeof launch.grid);
        memcpy(launch.block, kernel->sizes + 3, sizeof launch.block);
        launch.shared_bytes = kernel->sizes[6];
    }
    if (!kernel->emulated && here.driver == &apart_driver)
        return refused(kernel->name + strlen(kernel->name) + 1);
    if (here.driver == &cuda_driver) {
        launch.kernel = kernel_on(p, kernel);
        if (!launch.kernel) return false;
    } else memcpy(&launch.kernel, &kernel->emulated, sizeof launch.kernel); /* no cast in ISO C */
    if (!went(here.driver->launch(p->device, QUEUE_KERNELS, &launch))) return false;
    Event_ event = here.driver->record(p->device, QUEUE_KERNELS);
    for (int64_t k = 0; k < here.arrays; k++) {
        Lying *a = &p->arrays[k];
        if (a->touched && a->writes) a->written = event;
        if (a->touched) a->read = event;
        a->touched = a->writes = false;
    }
    return true;
}

void avial_on_launch(void (*ran)(int64_t, int64_t, int64_t)) { avial_launched = ran; }

/* Waiting -------------------------------------------------------------------------------------- */

bool avial_host_waits(bool written)
{
    for (int64_t k = 0; k < here.devices; k++) {
        Place *p = &here.places[k];
        if (!p->device) continue;
        if (!went(here.driver->synchronise(p->device, written ? p->fills : p->reads))) return false;
    }
    return true;
}

bool avial_places_end(void)
{
    static char first[1024]; /* the first failure; a driver may say more as its devices go */
    bool failed = avial_device_failed, well = true;
    if (failed && places_said != first) snprintf(first, sizeof first, "%s", places_said);
    for (int64_t k = 0; k < here.devices; k++) {
        if (!here.places[k].device || here.driver->finish(here.places[k].device)) continue;
        if (well && !failed) snprintf(first, sizeof first, "%s", here.driver->why());
        well = false;
    }
    bool keeps = !failed && well && here.driver != &null_driver; /* which counts from its opening */
    if (failed || !well) put_back(); /* as long as there are devices */
    give_back(keeps);
    if (!keeps) avial_places_drop();
    if (failed || !well) refused(first);
    return well;
}

/* Steps ---------------------------------------------------------------------------------------- */

void avial_step_on(int64_t place, int64_t number)
{
    step.place = place;
    step.number = number;
    avial_passed(number - 1);
    for (int64_t k = 0; k < here.arrays; k++) here.shapes[k].used = false;
}

void avial_step_uses(int64_t array)
{
    if (!avial_device_failed) here.shapes[array].used = true;
}

/* A copy to a device waits too: a message or a task may write the host's memory next. */
void avial_step_copy(int64_t from, int64_t to, int64_t array, const int64_t *box)
{
    avial_passed(step_at_hand() - 1);
    if (avial_device_failed || !avial_copy_box(from, to, array, box)) return;
    avial_host_waits(to < here.ranks);
}

/* Messages of steps that have begun, by their numbers. spare: in place of a stage, after a failure. */
typedef struct {
    Stage *stage;
    char *spare;
    int64_t array, box[2 * MAX_DIMS], requests[MOST_REQUESTS], count;
} StepMessage;
static struct {
    StepMessage *rows;
    int64_t count;
} messages;

static StepMessage *message_of(int64_t number)
{
    if (number >= messages.count) {
        int64_t count = 2 * number + 16;
        StepMessage *rows = realloc(messages.rows, (size_t)count * sizeof *rows);
        if (!rows) abort(); /* the other end would wait for good */
        memset(rows + messages.count, 0, (size_t)(count - messages.count) * sizeof *rows);
        messages.rows = rows, messages.count = count;
    }
    return &messages.rows[number];
}

static void check_step(int code)
{
    if (code && !avial_error) avial_error = code | step_at_hand() << 32;
}

/* All runs of the box, between the array and the stage. */
static bool stage_box(Stage *stage, int64_t array, const int64_t *box, bool out)
{
    BoxCopy runs = {.kind = COPY_OUT};
    int64_t offset = runs_of(&here.shapes[array], box, &runs), at[MAX_DIMS] = {0}, packed = 0, d = 1;
    int64_t count = runs.dims ? runs.count[0] : 1, apart = runs.dims ? runs.here[0] : 0;
    do {
        StageRuns row = {array, offset, apart, count, runs.run_bytes};
        if (!avial_stage_runs(stage, packed, &row, out)) return false;
        packed += count * runs.run_bytes;
        for (d = 1; d < runs.dims; d++) {
            offset += runs.here[d];
            if (++at[d] < runs.count[d]) break;
            offset -= runs.here[d] * runs.count[d];
            at[d] = 0;
        }
    } while (d < runs.dims);
    avial_stage_mark(stage, 0, out);
    return true;
}

static char *begin_message(StepMessage *m, int64_t place, int64_t array, const int64_t *box)
{
    int64_t bytes = box_bytes(&here.shapes[array], box);
    avial_passed(step_at_hand() - 1);
    *m = (StepMessage){.stage = avial_device_failed ? NULL : avial_stage(place, bytes), .array = array};
    memcpy(m->box, box, (size_t)here.shapes[array].dims * 16);
    if (m->stage) return avial_stage_memory(m->stage);
    m->spare = calloc((size_t)bytes, 1);
    if (!m->spare) abort(); /* likewise */
    return m->spare;
}

static void post_message(StepMessage *m, char *data, int64_t bytes, bool out, int64_t peer, int64_t tag)
{
    int64_t each = (bytes + MOST_REQUESTS - 1) / MOST_REQUESTS;
    if (each < LARGEST_CALL) each = LARGEST_CALL;
    for (int64_t at = 0; at < bytes; at += each) {
        int count = (int)(bytes - at < each ? bytes - at : each);
        int64_t *request = &m->requests[m->count++];
        check_step(out ? MPI_Isend(data + at, count, avial_byte, (int)peer, (int)tag, avial_comm, request)
                       : MPI_Irecv(data + at, count, avial_byte, (int)peer, (int)tag, avial_comm,
                                   request));
    }
}

static void await_message(StepMessage *m)
{
    for (int64_t k = 0; k < m->count && !avial_error; k++)
        check_step(MPI_Wait(&m->requests[k], (void *)(intptr_t)avial_status_ignore));
}

static void end_message(StepMessage *m)
{
    if (m->stage) avial_stage_free(m->stage);
    free(m->spare);
    *m = (StepMessage){0};
}

void avial_step_post(int64_t number, int64_t place, int64_t array, int64_t peer, int64_t tag,
                     const int64_t *box)
{
    StepMessage *m = message_of(number);
    char *data = begin_message(m, place, array, box);
    post_message(m, data, box_bytes(&here.shapes[array], box), false, peer, tag);
}

void avial_step_send(int64_t number, int64_t place, int64_t array, int64_t peer, int64_t tag,
                     const int64_t *box)
{
    StepMessage *m = message_of(number);
    char *data = begin_message(m, place, array, box);
    if (m->stage && stage_box(m->stage, array, box, true)) avial_stage_wait(m->stage, 0);
    post_message(m, data, box_bytes(&here.shapes[array], box), true, peer, tag);
}

void avial_step_received(int64_t number)
{
    StepMessage *m = message_of(number);
    await_message(m);
    avial_passed(step_at_hand() - 1);
    if (m->stage && !avial_device_failed && !avial_error) stage_box(m->stage, m->array, m->box, false);
    end_message(m);
}

void avial_step_sent(int64_t number)
{
    StepMessage *m = message_of(number);
    await_message(m);
    end_message(m);
}

/* Of a step with several launches from the first to the last. */
static void keep_times(int64_t tag, int64_t began_ns, int64_t ended_ns)
{
    int64_t *ran = &avial_ran[2 * tag];
    if (!ran[0] || began_ns < ran[0]) ran[0] = began_ns;
    if (ended_ns > ran[1]) ran[1] = ended_ns;
}

/* What the ownership runtime has for phases, where that is not linked. */
AVIAL_DEVICE void *avial_there(int64_t array, void *host);
AVIAL_DEVICE void avial_launch(void (*kernel)(void *), const void *data, int64_t bytes);
AVIAL_DEVICE void avial_launch_kernel(void (*emulated)(void *), const void *data, int64_t bytes,
                                      const int64_t *sizes, const char *image, const char *name,
                                      const int64_t *offsets, int64_t arguments);

void *avial_there(int64_t array, void *host)
{
    if (avial_device_failed) return host;
    if (!here.shapes[array].used) return (void *)(intptr_t)NOWHERE;
    return avial_at(step.place, array, host);
}

static void launch_step(const DeviceKernel *kernel, const void *data, int64_t bytes)
{
    if (avial_device_failed) return;
    avial_on_launch(avial_ran ? keep_times : NULL);
    for (int64_t k = 0; k < here.arrays; k++)
        if (here.shapes[k].used && !avial_touch(step.place, k, 1)) return;
    avial_launch_at(step.place, kernel, data, bytes, step.number);
}

void avial_launch(void (*kernel)(void *), const void *data, int64_t bytes)
{
    launch_step(&(DeviceKernel){.emulated = kernel}, data, bytes);
}

void avial_launch_kernel(void (*emulated)(void *), const void *data, int64_t bytes,
                         const int64_t *sizes, const char *image, const char *name,
                         const int64_t *offsets, int64_t arguments)
{
    DeviceKernel kernel = {emulated, sizes, image, name, offsets, arguments};
    launch_step(&kernel, data, bytes);
}
