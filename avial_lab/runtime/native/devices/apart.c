/* The emulated GPU. Its memory is its own and poisoned, so that who forgets a copy computes with
 * poison; and nothing that is put into a queue runs before somebody has to wait for it, or it runs
 * in an order drawn from a seed, so that who forgets a wait computes with what was there before.
 *
 *     queue 0   ▢ launch   ▢ launch   ▢ record        ▢ waits in the list
 *     queue 1   ▢ copy     ▢ wait for queue 0         ▣ ran
 *     queue 2   ▣ copy
 *
 * A kernel is a function of the program: the launch as loops over blocks and threads.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { POISON = 0xff }; /* NaN in every floating-point format, -1 in integers */

typedef struct Apart Apart;

typedef struct {
    enum { ITEM_COPY, ITEM_LAUNCH, ITEM_WAIT, ITEM_POISON } kind; /* poison: the copy's device, run */
    BoxCopy copy;
    Launch launch;
    void *data; /* of the launch; aligned as by malloc */
    Apart *other;
    Event_ event;
} Item;

typedef struct {
    Item *items;
    int64_t count, capacity;
    int64_t first; /* those before it ran */
    int64_t ran;   /* since the device was opened */
} Line;

/* span: of the addresses that begin at `base`, where granules are mapped; else 0. Such ones have an
 * allocation for each part, and one of no bytes. */
typedef struct {
    char *memory;
    int64_t bytes;
    bool others; /* it was not taken here */
    char *base;
    int64_t span;
} Allocation;

struct Apart {
    Line lines[QUEUES];
    Allocation *allocations;
    int64_t count, capacity;
    int64_t memory, taken; /* bytes: how large it is (0: as the host's), in allocations */
    uint64_t seed; /* 0: late */
};

uint64_t avial_apart_seed;
int64_t avial_apart_memory;
void (*avial_launched)(int64_t tag, int64_t began_ns, int64_t ended_ns);

static char apart_said[256] = "";
static const char *apart_why(void) { return apart_said; }

static bool apart_refuse(const char *words)
{
    snprintf(apart_said, sizeof apart_said, "%s", words);
    return false;
}

static int64_t apart_count(void) { return -1; } /* as many as are asked for */

static void apart_again(void *handle)
{
    Apart *device = handle;
    device->seed = avial_apart_seed;
    device->memory = avial_apart_memory;
}

static void *apart_open(int64_t number)
{
    (void)number;
    Apart *device = calloc(1, sizeof *device);
    if (!device) apart_refuse("out of memory for an emulated device");
    else apart_again(device);
    return device;
}

static void apart_close(void *handle)
{
    Apart *device = handle;
    for (int q = 0; q < QUEUES; q++) {
        Line *line = &device->lines[q];
        for (int64_t k = line->first; k < line->count; k++) free(line->items[k].data);
        free(line->items);
    }
    for (int64_t k = 0; k < device->count; k++) {
        const Allocation *a = &device->allocations[k];
        if (a->span && !a->bytes) munmap(a->base, (size_t)a->span);
        else if (!a->span && !a->others) free(a->memory);
    }
    free(device->allocations);
    free(device);
}

/* Those of a GPU of today. */
static bool apart_limits(void *handle, Limits *to)
{
    const Apart *device = handle;
    int64_t memory = device->memory ? device->memory : INT64_MAX;
    *to = (Limits){.block_threads = 1024,
                   .block = {1024, 1024, 64},
                   .grid = {INT32_MAX, 65535, 65535},
                   .shared_bytes = 227 << 10,
                   .memory_bytes = memory,
                   .free_bytes = device->memory ? memory - device->taken : INT64_MAX,
                   .name = "emulated GPU"};
    return true;
}

/* Memory --------------------------------------------------------------------------------------- */

static bool note_memory(Apart *device, Allocation one)
{
    if (device->count == device->capacity) {
        int64_t more = device->capacity ? 2 * device->capacity : 16;
        void *rows = realloc(device->allocations, (size_t)more * sizeof(Allocation));
        if (!rows) return apart_refuse("out of memory for an emulated device");
        device->allocations = rows;
        device->capacity = more;
    }
    device->allocations[device->count++] = one;
    return true;
}

static uint64_t apart_allocate(void *handle, int64_t bytes)
{
    Apart *device = handle;
    int64_t wanted = bytes > 0 ? (bytes + 255) / 256 * 256 : 256;
    bool fits = bytes >= 0 && (!device->memory || bytes <= device->memory - device->taken);
    char *memory = fits ? aligned_alloc(256, (size_t)wanted) : NULL;
    if (!memory) {
        snprintf(apart_said, sizeof apart_said,
                 "the emulated device has no memory for %lld bytes", (long long)bytes);
        return 0;
    }
    memset(memory, POISON, (size_t)wanted);
    if (!note_memory(device, (Allocation){.memory = memory, .bytes = bytes})) {
        free(memory);
        return 0;
    }
    device->taken += bytes;
    return (uint64_t)(uintptr_t)memory;
}

/* Takes the reserved addresses back. */
static void unmap(Apart *device, char *base, int64_t span)
{
    int64_t left = 0;
    for (int64_t k = 0; k < device->count; k++) {
        Allocation a = device->allocations[k];
        if (a.span && a.base == base) device->taken -= a.bytes;
        else device->allocations[left++] = a;
    }
    device->count = left;
    munmap(base, (size_t)span);
}

static bool apart_maps(void *device)
{
    (void)device;
    return true;
}

/* What is touched beside the granules ends the process: nobody may read or write there. */
static uint64_t apart_reserve(void *handle, int64_t bytes, const int64_t *runs, int64_t count)
{
    Apart *device = handle;
    int64_t span = (bytes + GRANULE - 1) / GRANULE * GRANULE, mapped = 0;
    for (int64_t k = 0; k < count; k++) mapped += (runs[2 * k + 1] - runs[2 * k]) * GRANULE;
    bool fits = !device->memory || mapped <= device->memory - device->taken;
    char *base = fits ? mmap(NULL, (size_t)span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1, 0) : MAP_FAILED;
    if (base == MAP_FAILED) {
        snprintf(apart_said, sizeof apart_said,
                 "the emulated device has no memory for %lld bytes", (long long)mapped);
        return 0;
    }
    bool well = note_memory(device, (Allocation){.memory = base, .base = base, .span = span});
    for (int64_t k = 0; k < count && well; k++) {
        char *part = base + runs[2 * k] * GRANULE;
        int64_t size = (runs[2 * k + 1] - runs[2 * k]) * GRANULE;
        well = !mprotect(part, (size_t)size, PROT_READ | PROT_WRITE) &&
               note_memory(device, (Allocation){part, size, false, base, span});
        if (!well) break;
        memset(part, POISON, (size_t)size);
        device->taken += size;
    }
    if (well) return (uint64_t)(uintptr_t)base;
    unmap(device, base, span);
    apart_refuse("the emulated device cannot map its memory");
    return 0;
}

static bool apart_release(void *handle, uint64_t address)
{
    Apart *device = handle;
    for (int64_t k = 0; k < device->count; k++) {
        Allocation *a = &device->allocations[k];
        if (!a->span || (uint64_t)(uintptr_t)a->base != address) continue;
        unmap(device, a->base, a->span);
        return true;
    }
    for (int64_t k = 0; k < device->count; k++) {
        Allocation *a = &device->allocations[k];
        if ((uint64_t)(uintptr_t)a->memory != address || a->others) continue;
        memset(a->memory, POISON, (size_t)a->bytes); /* for who still has its address */
        free(a->memory);
        device->taken -= a->bytes;
        *a = device->allocations[--device->count];
        return true;
    }
    return apart_refuse("memory is released that the emulated device does not have");
}

static bool apart_has(const Apart *device, uint64_t address, int64_t bytes)
{
    for (int64_t k = 0; k < device->count; k++) {
        uint64_t begin = (uint64_t)(uintptr_t)device->allocations[k].memory;
        if (address >= begin && address - begin + (uint64_t)bytes <=
                                    (uint64_t)device->allocations[k].bytes)
            return true;
    }
    return false;
}

/* What runs ------------------------------------------------------------------------------------ */

static int64_t apart_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static void copy_in_run(void *unused, uint64_t here, uint64_t there, int64_t bytes)
{
    (void)unused;
    memcpy((void *)(uintptr_t)here, (const void *)(uintptr_t)there, (size_t)bytes);
}

static void copy_out_run(void *unused, uint64_t here, uint64_t there, int64_t bytes)
{
    (void)unused;
    memcpy((void *)(uintptr_t)there, (const void *)(uintptr_t)here, (size_t)bytes);
}

static void run_copy(const BoxCopy *c)
{
    if (c->kind == COPY_IN) for_each_run(c, c->device, (uint64_t)(uintptr_t)c->host, copy_in_run, 0);
    if (c->kind == COPY_OUT)
        for_each_run(c, c->device, (uint64_t)(uintptr_t)c->host, copy_out_run, 0);
    if (c->kind == COPY_WITHIN) for_each_run(c, c->device, c->source, copy_in_run, 0);
}

static void run_launch(const Launch *launch, void *data)
{
    int64_t began = avial_launched ? apart_now() : 0, aside = 0;
    volatile int64_t *journal = &avial_journal ? avial_journal : NULL;
    void (*kernel)(void *);
    memcpy(&kernel, &launch->kernel, sizeof kernel); /* ISO C has no cast for that */
    if (journal) aside = *journal, *journal = launch->step;
    kernel(data);
    if (journal) *journal = aside;
    if (avial_launched) avial_launched(launch->tag, began, apart_now());
}

static bool apart_is_over(const Apart *device, Event_ event)
{
    return event / QUEUES <= device->lines[event % QUEUES].ran;
}

static void run_up_to(Apart *device, Event_ event);

/* The next of that queue; whatever that waits for runs first. */
static void run_next(Apart *device, int queue)
{
    Line *line = &device->lines[queue];
    Item item = line->items[line->first];
    if (item.kind == ITEM_WAIT) run_up_to(item.other, item.event);
    if (item.kind == ITEM_COPY) run_copy(&item.copy);
    if (item.kind == ITEM_LAUNCH) run_launch(&item.launch, item.data);
    if (item.kind == ITEM_POISON)
        memset((void *)(uintptr_t)item.copy.device, POISON, (size_t)item.copy.run_bytes);
    free(item.data);
    line->ran++;
    if (++line->first == line->count) line->first = line->count = 0;
}

static void run_up_to(Apart *device, Event_ event)
{
    while (!apart_is_over(device, event)) run_next(device, (int)(event % QUEUES));
}

static uint64_t draw(Apart *device) /* xorshift64 (Marsaglia 2003) */
{
    uint64_t x = device->seed;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return device->seed = x;
}

/* Of a random order: whether something runs now, and in which queue. Nothing is forced: what waits
 * for another queue stays. */
static void run_at_random(Apart *device)
{
    for (uint64_t steps = device->seed ? draw(device) % 4 : 0; steps > 0; steps--) {
        int queue = (int)(draw(device) % QUEUES);
        Line *line = &device->lines[queue];
        if (line->first == line->count) continue;
        const Item *item = &line->items[line->first];
        if (item->kind == ITEM_WAIT && !apart_is_over(item->other, item->event)) continue;
        run_next(device, queue);
    }
}

/* Queues --------------------------------------------------------------------------------------- */

static bool put(Apart *device, enum Queue queue, Item item)
{
    Line *line = &device->lines[queue];
    if (line->count == line->capacity) {
        int64_t more = line->capacity ? 2 * line->capacity : 64;
        Item *items = malloc((size_t)more * sizeof *items);
        if (!items) {
            free(item.data);
            return apart_refuse("out of memory for a queue of an emulated device");
        }
        for (int64_t k = line->first; k < line->count; k++) items[k - line->first] = line->items[k];
        free(line->items);
        line->count -= line->first;
        line->first = 0;
        line->items = items;
        line->capacity = more;
    }
    line->items[line->count++] = item;
    run_at_random(device);
    return true;
}

static Apart *checked_device;
static bool checked_inside;
static void check_run(void *unused, uint64_t here, uint64_t there, int64_t bytes)
{
    (void)unused, (void)there;
    checked_inside &= apart_has(checked_device, here, bytes);
}

static bool apart_copy(void *handle, enum Queue queue, const BoxCopy *copy)
{
    checked_device = handle;
    checked_inside = true;
    for_each_run(copy, copy->device, 0, check_run, NULL);
    if (!checked_inside) return apart_refuse("a copy leaves the memory of the emulated device");
    return put(handle, queue, (Item){.kind = ITEM_COPY, .copy = *copy});
}

static bool apart_forget(void *handle, enum Queue queue, uint64_t address, int64_t bytes)
{
    BoxCopy there = {.device = address, .run_bytes = bytes};
    return put(handle, queue, (Item){.kind = ITEM_POISON, .copy = there});
}

static bool apart_launch(void *handle, enum Queue queue, const Launch *launch)
{
    Limits limits;
    apart_limits(handle, &limits);
    if (!launch_fits(&limits, launch, apart_said, sizeof apart_said)) return false;
    void *data = malloc(launch->bytes > 0 ? (size_t)launch->bytes : 1);
    if (!data) return apart_refuse("out of memory for a launch on an emulated device");
    if (launch->bytes > 0) memcpy(data, launch->data, (size_t)launch->bytes);
    return put(handle, queue, (Item){.kind = ITEM_LAUNCH, .launch = *launch, .data = data});
}

/* A queue's event is the number of items that were put there, up to it. */
static Event_ apart_record(void *handle, enum Queue queue)
{
    const Line *line = &((Apart *)handle)->lines[queue];
    return (line->ran + line->count - line->first) * QUEUES + queue;
}

static bool apart_wait(void *handle, enum Queue queue, void *other, Event_ event)
{
    if (apart_is_over(other, event)) return true;
    if (handle == other && event % QUEUES == queue) return true; /* its own order says so */
    return put(handle, queue, (Item){.kind = ITEM_WAIT, .other = other, .event = event});
}

static bool apart_synchronise(void *handle, Event_ event)
{
    run_up_to(handle, event);
    return true;
}

static bool apart_finish(void *handle)
{
    for (int q = 0; q < QUEUES; q++) run_up_to(handle, apart_record(handle, (enum Queue)q));
    return true;
}

/* Memory of this process, which stands for that of the device. */
static bool apart_holds(void *handle, uint64_t address, int64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = address / page * page;
    size_t size = (size_t)(address + (uint64_t)bytes - begin);
    if (!bytes) return true;
    if (!msync((void *)(uintptr_t)begin, size, MS_ASYNC))
        return note_memory(handle, (Allocation){.memory = (char *)(uintptr_t)address,
                                                .bytes = bytes, .others = true});
    return apart_refuse("the emulated device has no memory there: it was freed, or is another's");
}

static bool apart_after(void *handle, uint64_t stream)
{
    (void)handle, (void)stream; /* nobody else's streams run late */
    return true;
}

static void *apart_load(void *handle, const char *image)
{
    (void)image;
    return handle; /* kernels are in the program */
}

static void *apart_kernel(void *handle, void *module, const char *name)
{
    (void)handle, (void)module, (void)name;
    apart_refuse("an emulated device runs the kernels of its program, and no others");
    return NULL;
}

const Driver apart_driver = {
    .name = "apart",
    .count = apart_count,
    .open = apart_open,
    .close = apart_close,
    .limits = apart_limits,
    .allocate = apart_allocate,
    .release = apart_release,
    .copy = apart_copy,
    .load = apart_load,
    .kernel = apart_kernel,
    .launch = apart_launch,
    .record = apart_record,
    .wait = apart_wait,
    .synchronise = apart_synchronise,
    .finish = apart_finish,
    .why = apart_why,
    .holds = apart_holds,
    .after = apart_after,
    .forget = apart_forget,
    .again = apart_again,
    .maps = apart_maps,
    .reserve = apart_reserve,
};
