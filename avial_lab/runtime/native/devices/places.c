#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* An array on a device: its memory, 0 before it has any, and the last that touched it. */
typedef struct {
    uint64_t address;
    Event_ written, read; /* the last launch that writes it, and that touches it */
    Event_ in, out;       /* by copies */
    bool touched, writes; /* by the next launch */
} Lying;

/* A kernel that a device has found in an image, both by their addresses. */
typedef struct {
    const char *image, *name;
    void *kernel;
} Found;

typedef struct {
    void *device;  /* NULL of another rank's */
    Found *found;
    int64_t kernels;
    Lying *arrays; /* `room` of them */
    Event_ reads, fills; /* the last copy that reads, or writes, the host's memory */
} Place;

typedef struct {
    int64_t dims, extents[MAX_DIMS], itemsize;
    char *host;
    bool pinned;
    bool used; /* by the step at hand */
} Shape;

enum { LEAST_PINNED = 1 << 20 }; /* bytes; it takes some 40 us for each of them */

int64_t avial_driver, avial_seed;
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

static const char *places_said = "";
const char *avial_device_why(void) { return places_said; }

int64_t avial_device_failed;
int64_t *avial_ran;

static bool refused(const char *why)
{
    places_said = why;
    avial_device_failed = 1;
    return false;
}

static bool went(bool well) { return well || refused(here.driver->why()); }

static const Driver *chosen(void)
{
    if (avial_driver == DRIVER_NULL) return &null_driver;
    return avial_driver == DRIVER_CUDA ? &cuda_driver : &apart_driver;
}

static Place *place_of(int64_t place)
{
    int64_t k = place - here.ranks;
    return k >= 0 && k < here.devices && here.places[k].device ? &here.places[k] : NULL;
}

/* A device of this rank. */
static void *own_device(void)
{
    for (int64_t k = 0; k < here.devices; k++)
        if (here.places[k].device) return here.places[k].device;
    return NULL;
}

static void give_back(void)
{
    for (int64_t k = 0; k < here.arrays; k++)
        if (here.shapes[k].pinned) here.driver->unpin(own_device(), here.shapes[k].host);
    for (int64_t k = 0; k < here.devices; k++) {
        if (here.places[k].device) here.driver->close(here.places[k].device);
        free(here.places[k].arrays), free(here.places[k].found);
    }
    free(here.places), free(here.shapes), free(here.copied);
    memset(&here, 0, sizeof here);
}

bool avial_places(int64_t ranks, int64_t rank, int64_t devices, const int64_t *driver)
{
    give_back();
    avial_device_failed = 0;
    avial_apart_seed = (uint64_t)avial_seed;
    here.driver = chosen();
    here.ranks = ranks;
    here.rank = rank;
    here.devices = devices;
    here.places = calloc((size_t)devices + 1, sizeof *here.places);
    size_t pairs = (size_t)((ranks + devices) * (ranks + devices));
    here.copied = calloc(pairs, sizeof *here.copied);
    if (!here.places || !here.copied) {
        here.devices = 0;
        return refused("out of memory for devices");
    }
    int64_t available = here.driver->count();
    for (int64_t k = 0; k < devices; k++) {
        if (driver[k] != rank) continue;
        int64_t number = available > 0 ? k % available : k; /* ranks side by side take others */
        here.places[k].device = here.driver->open(number);
        if (!went(here.places[k].device)) return false;
    }
    return true;
}

static int64_t bytes_of_shape(const Shape *s)
{
    int64_t bytes = s->itemsize;
    for (int64_t d = 0; d < s->dims; d++) bytes *= s->extents[d];
    return bytes;
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

/* What the array would take, what is free, and what is there already. */
static void no_memory(Place *p, int64_t array)
{
    static char said[1024];
    Limits limits = {0};
    int64_t there = 0;
    size_t n = (size_t)snprintf(said, sizeof said, "%s: array %lld takes %lld bytes",
                                here.driver->why(), (long long)array,
                                (long long)bytes_of_shape(&here.shapes[array]));
    if (n < sizeof said && here.driver->limits(p->device, &limits) && limits.free_bytes < INT64_MAX)
        n += (size_t)snprintf(said + n, sizeof said - n, ", and %lld of %lld are free",
                              (long long)limits.free_bytes, (long long)limits.memory_bytes);
    for (int64_t k = 0; k < here.arrays && n < sizeof said; k++)
        if (p->arrays[k].address)
            n += (size_t)snprintf(said + n, sizeof said - n, "%s array %lld with %lld bytes",
                                  there++ ? "," : "; there are already", (long long)k,
                                  (long long)bytes_of_shape(&here.shapes[k]));
    refused(said);
}

/* Where the array begins on that device. */
static uint64_t memory_on(Place *p, int64_t array)
{
    Lying *a = &p->arrays[array];
    if (!a->address) a->address = here.driver->allocate(p->device, bytes_of_shape(&here.shapes[array]));
    if (!a->address) no_memory(p, array);
    return a->address;
}

char *avial_at(int64_t place, int64_t array, char *host)
{
    Place *p = place_of(place);
    if (!p) return host;
    uint64_t begin = memory_on(p, array);
    return begin ? (char *)(uintptr_t)begin + (host - here.shapes[array].host) : NULL;
}

/* Copies --------------------------------------------------------------------------------------- */

/* The box as runs of bytes, whose offset from where the array begins is returned. */
static int64_t runs_of(const Shape *s, const int64_t *box, BoxCopy *copy)
{
    int64_t step = s->itemsize, offset = 0, d = s->dims - 1;
    copy->run_bytes = s->itemsize;
    copy->dims = 0;
    for (bool whole = true; d >= 0; d--) {
        int64_t extent = box[s->dims + d] - box[d];
        offset += box[d] * step;
        if (whole) copy->run_bytes *= extent;
        else {
            copy->count[copy->dims] = extent;
            copy->here[copy->dims] = copy->there[copy->dims] = step;
            copy->dims++;
        }
        whole = whole && extent == s->extents[d];
        step *= s->extents[d];
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
    int64_t bytes = copy.run_bytes;
    for (int64_t k = 0; k < copy.dims; k++) bytes *= copy.count[k];
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
    here.copied[pair].bytes += bytes;
    Lying *a = &own->arrays[array];
    if (copy.kind == COPY_OUT) return copy_out(own, a, &copy);
    if (copy.kind == COPY_IN) return copy_in(own, a, &copy);
    return copy_across(source, &source->arrays[array], own, a, &copy);
}

int64_t avial_copied(int64_t from, int64_t to, int64_t *bytes)
{
    int64_t pair = from * (here.ranks + here.devices) + to;
    *bytes = here.copied[pair].bytes;
    return here.copied[pair].copies;
}

/* Launches ------------------------------------------------------------------------------------- */

bool avial_touch(int64_t place, int64_t array, int64_t writes)
{
    Place *p = place_of(place);
    if (!p) return refused("a launch on a place that this rank does not drive");
    p->arrays[array].touched = true;
    p->arrays[array].writes |= writes != 0;
    return true;
}

/* The device's own kernel, which is loaded when it is launched first; NULL where there is none. */
static void *kernel_on(Place *p, const DeviceKernel *kernel)
{
    for (int64_t k = 0; k < p->kernels; k++)
        if (p->found[k].name == kernel->name && p->found[k].image == kernel->image)
            return p->found[k].kernel;
    if (!kernel->image || !kernel->image[0]) {
        refused(!kernel->image && kernel->name ? kernel->name
                                               : "what is to run on the device has no kernel that "
                                                 "it could load");
        return NULL;
    }
    Found *more = realloc(p->found, (size_t)(p->kernels + 1) * sizeof *more);
    if (!more) {
        refused("out of memory for kernels");
        return NULL;
    }
    p->found = more;
    void *module = here.driver->load(p->device, kernel->image);
    void *found = module ? here.driver->kernel(p->device, module, kernel->name) : NULL;
    if (went(found)) p->found[p->kernels++] = (Found){kernel->image, kernel->name, found};
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
                     .offsets = kernel->offsets, .arguments = kernel->arguments, .tag = tag};
    if (kernel->sizes) {
        memcpy(launch.grid, kernel->sizes, sizeof launch.grid);
        memcpy(launch.block, kernel->sizes + 3, sizeof launch.block);
        launch.shared_bytes = kernel->sizes[6];
    }
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
    static char kept[1024]; /* the first failure; a driver may say more as its devices go */
    bool failed = avial_device_failed, well = true;
    if (failed && places_said != kept) snprintf(kept, sizeof kept, "%s", places_said);
    for (int64_t k = 0; k < here.devices; k++) {
        if (!here.places[k].device || here.driver->finish(here.places[k].device)) continue;
        if (well && !failed) snprintf(kept, sizeof kept, "%s", here.driver->why());
        well = false;
    }
    give_back();
    if (failed || !well) refused(kept);
    return well;
}

/* Steps ---------------------------------------------------------------------------------------- */

static struct {
    int64_t place, number;
} step;

void avial_step_on(int64_t place, int64_t number)
{
    step.place = place;
    step.number = number;
    for (int64_t k = 0; k < here.arrays; k++) here.shapes[k].used = false;
}

void avial_step_uses(int64_t array)
{
    if (!avial_device_failed) here.shapes[array].used = true;
}

/* A copy to a device waits too: a message or a task may write the host's memory next. */
void avial_step_copy(int64_t from, int64_t to, int64_t array, const int64_t *box)
{
    if (avial_device_failed || !avial_copy_box(from, to, array, box)) return;
    avial_host_waits(to < here.ranks);
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
    return avial_device_failed ? host : avial_at(step.place, array, host);
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
