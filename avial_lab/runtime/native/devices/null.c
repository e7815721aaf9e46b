/* A device that does nothing but count: for plans, and to see what a program asks of a device. */
#include <stddef.h>

#include "driver.h"

enum { FIRST_ADDRESS = 256 };

NullCounts avial_null_counts;
static int64_t null_opened;
static uint64_t null_next = FIRST_ADDRESS;

static int64_t null_count(void) { return -1; }

static void *null_open(int64_t number)
{
    (void)number;
    if (!null_opened++) avial_null_counts = (NullCounts){0};
    return &avial_null_counts;
}

static void null_close(void *device)
{
    (void)device;
    null_opened--;
}

static bool null_limits(void *device, Limits *to)
{
    (void)device;
    *to = (Limits){.block_threads = INT64_MAX,
                   .block = {INT64_MAX, INT64_MAX, INT64_MAX},
                   .grid = {INT64_MAX, INT64_MAX, INT64_MAX},
                   .shared_bytes = INT64_MAX,
                   .memory_bytes = INT64_MAX,
                   .free_bytes = INT64_MAX,
                   .name = "null"};
    return true;
}

static uint64_t null_allocate(void *device, int64_t bytes)
{
    (void)device;
    uint64_t address = null_next;
    null_next += (uint64_t)(bytes + 255) / 256 * 256 + 256;
    avial_null_counts.allocated_bytes += bytes;
    return address;
}

static bool null_maps(void *device)
{
    (void)device;
    return true;
}

static uint64_t null_reserve(void *device, int64_t bytes, const int64_t *runs, int64_t count)
{
    int64_t mapped = 0;
    for (int64_t k = 0; k < count; k++) mapped += (runs[2 * k + 1] - runs[2 * k]) * GRANULE;
    uint64_t address = null_allocate(device, bytes);
    avial_null_counts.allocated_bytes += mapped - bytes;
    return address;
}

static bool null_release(void *device, uint64_t address)
{
    (void)device, (void)address;
    return true;
}

static void count_run(void *unused, uint64_t here, uint64_t there, int64_t bytes)
{
    (void)unused, (void)here, (void)there;
    avial_null_counts.copied_bytes += bytes;
}

static bool null_copy(void *device, enum Queue queue, const BoxCopy *copy)
{
    (void)device, (void)queue;
    avial_null_counts.copies++;
    for_each_run(copy, copy->device, 0, count_run, NULL);
    return true;
}

static void *null_load(void *device, const char *image)
{
    (void)image;
    return device;
}

static void *null_kernel(void *device, void *module, const char *name)
{
    (void)module, (void)name;
    return device;
}

static bool null_launch(void *device, enum Queue queue, const Launch *launch)
{
    (void)device, (void)queue, (void)launch;
    avial_null_counts.launches++;
    return true;
}

static Event_ null_record(void *device, enum Queue queue)
{
    (void)device, (void)queue;
    return 0;
}

static bool null_wait(void *device, enum Queue queue, void *other, Event_ event)
{
    (void)device, (void)queue, (void)other, (void)event;
    return true;
}

static bool null_synchronise(void *device, Event_ event)
{
    (void)device, (void)event;
    return true;
}

static bool null_finish(void *device)
{
    (void)device;
    return true;
}

static bool null_holds(void *device, uint64_t address, int64_t bytes)
{
    (void)device, (void)address, (void)bytes;
    return true;
}

static bool null_after(void *device, uint64_t stream)
{
    (void)device, (void)stream;
    return true;
}

static const char *null_why(void) { return ""; }

const Driver null_driver = {
    .name = "null",
    .count = null_count,
    .open = null_open,
    .close = null_close,
    .limits = null_limits,
    .allocate = null_allocate,
    .release = null_release,
    .copy = null_copy,
    .load = null_load,
    .kernel = null_kernel,
    .launch = null_launch,
    .record = null_record,
    .wait = null_wait,
    .synchronise = null_synchronise,
    .finish = null_finish,
    .why = null_why,
    .holds = null_holds,
    .after = null_after,
    .maps = null_maps,
    .reserve = null_reserve,
};
