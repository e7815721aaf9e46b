/* libcuda.so.1 without a GPU: the calls of cuda_calls.h on memory of the host. What is put into a
 * stream runs when somebody waits for it, and no earlier than that: a wait that is forgotten is a wrong
 * value. What is tested with it is what the driver is asked; a kernel called `fill` stores its second argument and
 * the number of threads of the launch at its first. With FAKE_FAULT=700 in the environment any kernel is
 * launched, none does anything, and from the first launch on the context answers with that error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda_calls.h"

#define FAKE(name, parameters) CUresult name parameters;
CUDA_CALLS(FAKE)
CUDA_MAPPING_CALLS(FAKE)
CUDA_PACKING_CALLS(FAKE)

static int current, kernel;

/* Of a stream: a copy of rows, a host's function, a kernel's store, or a wait. */
typedef struct Line Line;
typedef struct {
    char *to;
    const char *from;
    size_t bytes, height, to_pitch, from_pitch;
    void (*function)(void *);
    void *argument;
    int64_t *at, value;
    Line *other;
    int64_t upto;
} Item;

/* A stream, with how many copies within the device were put into it, and all; an event, with how much
 * that was when it was recorded; how much the host has waited for, and how often. */
struct Line {
    int64_t put;
    Item *items;
    int64_t count, ran;
    Line *recorded;
};
int64_t fake_over, fake_waits, fake_records, fake_loaded; /* the last: a cubin's fifth byte */
enum { MOST_STREAMS = 64 };
static Line *streams[MOST_STREAMS];

static CUresult put(CUstream stream, Item item)
{
    Line *line = stream;
    if (!line) return 1;
    line->items = realloc(line->items, (size_t)(line->count + 1) * sizeof item);
    line->items[line->count++] = item;
    return 0;
}

static void run_up_to(Line *line, int64_t upto)
{
    while (line->ran < upto) {
        Item item = line->items[line->ran];
        if (item.other) run_up_to(item.other, item.upto);
        for (size_t k = 0; k < item.height; k++)
            memcpy(item.to + k * item.to_pitch, item.from + k * item.from_pitch, item.bytes);
        if (item.function) item.function(item.argument);
        if (item.at) *item.at = item.value;
        line->ran++;
    }
}

CUresult cuInit(unsigned flags) { return (int)flags; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, 0; }
CUresult cuGetErrorString(CUresult error, const char **words)
{
    *words = error == 2 ? "out of memory" : "it failed";
    return 0;
}
CUresult cuDeviceGetCount(int *count) { return *count = 2, 0; }
CUresult cuDeviceGet(CUdevice *device, int number) { return *device = number, 0; }
CUresult cuDeviceGetName(char *name, int capacity, CUdevice device)
{
    (void)device;
    return snprintf(name, (size_t)capacity, "Fake GPU"), 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    static const int values[128] = {[1] = 1024, [2] = 1024, [3] = 1024, [4] = 64, [5] = 2147483647,
                                    [6] = 65535, [7] = 65535, [75] = 9, [97] = 232448,
                                    [102] = 1};
    return *value = values[attribute], 0;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    return *bytes = (size_t)80 << 30, (void)device, 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    return *context = &current, 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return (void)device, 0; }
static int fault;
CUresult cuCtxSetCurrent(CUcontext context) { return fault ? fault : context != &current; }
CUresult cuCtxSynchronize(void)
{
    for (int k = MOST_STREAMS - 1; k >= 0; k--)
        if (streams[k]) run_up_to(streams[k], streams[k]->count);
    return 0;
}
CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    return *available = *total = (size_t)80 << 30, 0;
}
/* Memory that is mapped: addresses are of `reserved`, each granule of 2 MiB is there or not. */
enum { FAKE_GRANULES = 16 };
static const size_t FAKE_GRANULE = 2 << 20;
static char *reserved;
int64_t fake_mapped, fake_there;
CUresult cuMemGetAllocationGranularity(size_t *granule, const CUallocation *kind, int option)
{
    return *granule = FAKE_GRANULE, kind->type != CU_PINNED || option != CU_LEAST;
}
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    if (reserved || bytes % FAKE_GRANULE || bytes > FAKE_GRANULES * FAKE_GRANULE) return 1;
    reserved = malloc(bytes);
    return *address = (CUdeviceptr)(uintptr_t)reserved, alignment || wish || flags;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    if ((char *)(uintptr_t)address != reserved || fake_mapped || bytes % FAKE_GRANULE) return 1;
    return free(reserved), reserved = NULL, 0;
}
CUresult cuMemCreate(CUmemory *memory, size_t bytes, const CUallocation *kind,
                     unsigned long long flags)
{
    if (bytes > 8 * FAKE_GRANULE) return 2;
    fake_there++;
    return *memory = bytes, bytes % FAKE_GRANULE || kind->location.type != CU_ON_DEVICE || flags;
}
CUresult cuMemRelease(CUmemory memory) { return fake_there--, !memory; }
static int64_t granules_at(CUdeviceptr address, size_t bytes)
{
    int64_t found = 0;
    size_t first = (size_t)((char *)(uintptr_t)address - reserved);
    for (size_t g = first / FAKE_GRANULE; g < (first + bytes) / FAKE_GRANULE; g++)
        found |= (int64_t)1 << g;
    return found;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemory memory,
                  unsigned long long flags)
{
    if (memory != bytes || offset || flags || fake_mapped & granules_at(address, bytes)) return 1;
    return fake_mapped |= granules_at(address, bytes), 0;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    if (granules_at(address, bytes) & ~fake_mapped) return 1;
    return fake_mapped &= ~granules_at(address, bytes), 0;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUaccess *access, size_t count)
{
    return count != 1 || access->flags != CU_READ_WRITE || access->location.type != CU_ON_DEVICE ||
           granules_at(address, bytes) & ~fake_mapped;
}
static CUdeviceptr taken; /* what was allocated last, and of what size */
static size_t taken_bytes;
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (bytes > (size_t)1 << 40) return 2;
    *address = taken = (CUdeviceptr)(uintptr_t)malloc(bytes);
    taken_bytes = bytes;
    return 0;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr address)
{
    return *begin = taken, *bytes = taken_bytes, address - taken >= taken_bytes;
}
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    return *(int *)value = attribute == CU_MEMORY_TYPE ? CU_DEVICE : 0, address - taken >= taken_bytes;
}
CUresult cuMemFree_v2(CUdeviceptr address) { return free((void *)(uintptr_t)address), 0; }
CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    return (void)memory, (void)bytes, (int)flags;
}
/* Pinned memory is poisoned; how many bytes the host's functions were for a copy of. */
int64_t fake_pinned, fake_called;
CUresult cuMemAllocHost_v2(void **memory, size_t bytes)
{
    fake_pinned++;
    return *memory = memset(malloc(bytes), 0xff, bytes), 0;
}
CUresult cuMemFreeHost(void *memory) { return fake_pinned--, free(memory), 0; }
CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *argument)
{
    return fake_called++, put(stream, (Item){.function = function, .argument = argument});
}
CUresult cuMemHostUnregister(void *memory) { return memory == NULL; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return put(stream, (Item){.to = (char *)(uintptr_t)to, .from = from, .bytes = bytes, .height = 1});
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ((Line *)stream)->put++;
    return cuMemcpyHtoDAsync_v2(to, (void *)(uintptr_t)from, bytes, stream);
}
CUresult cuMemcpy2DAsync_v2(const CUcopy2d *c, CUstream stream)
{
    const char *from = c->from_type == CU_HOST ? c->from_host : (void *)(uintptr_t)c->from_device;
    char *to = c->to_type == CU_HOST ? c->to_host : (void *)(uintptr_t)c->to_device;
    return put(stream, (Item){.to = to, .from = from, .bytes = c->width_bytes, .height = c->height,
                              .to_pitch = c->to_pitch, .from_pitch = c->from_pitch});
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                            void **values)
{
    if (!strncmp(image, ".version 99", 11)) return CU_NEWER_PTX;
    const char *bytes = image;
    if (!strncmp(bytes, "\x7f" "ELF", 4) && bytes[4] != '!')
        return fake_loaded = bytes[4], *module = &kernel, 0;
    if (!strncmp(image, ".version", 8)) return fake_loaded = 0, *module = &kernel, 0;
    if (count == 2 && options[0] == CU_LOG) strcpy(values[0], "line 1: not PTX");
    return 218;
}
CUresult cuModuleUnload(CUmodule module) { return module != &kernel; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    return *function = &kernel, strcmp(name, "fill") && !getenv("FAKE_FAULT") ? 500 : 0;
}
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    return (void)function, (void)attribute, (void)value, 0;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                        void **arguments, void **extra)
{
    (void)shared, (void)extra;
    if (getenv("FAKE_FAULT")) return fault = atoi(getenv("FAKE_FAULT")), 0;
    int64_t value = *(int64_t *)arguments[1] + (int64_t)gx * gy * gz * bx * by * bz;
    return put(stream, (Item){.at = *(int64_t **)arguments[0], .value = value}) || function != &kernel;
}
CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    int k = 0;
    while (streams[k]) k++;
    return *stream = streams[k] = calloc(1, sizeof(Line)), flags != CU_NON_BLOCKING;
}
CUresult cuStreamDestroy_v2(CUstream stream)
{
    for (int k = 0; k < MOST_STREAMS; k++)
        if (streams[k] == stream) streams[k] = NULL;
    return free(((Line *)stream)->items), free(stream), 0;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    const Line *e = event;
    if (!stream || !event || flags) return 1;
    return e->recorded ? put(stream, (Item){.other = e->recorded, .upto = e->count}) : 0;
}
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    return *event = calloc(1, sizeof(Line)), flags != CU_NO_TIMING;
}
CUresult cuEventDestroy_v2(CUevent event) { return free(event), 0; }
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    Line *of = stream;
    *(Line *)event = (Line){.put = of->put, .count = of->count, .recorded = of};
    return fake_records++, 0;
}
CUresult cuEventSynchronize(CUevent event)
{
    Line *e = event;
    fake_over = e->put;
    if (e->recorded) run_up_to(e->recorded, e->count);
    return fake_waits++, 0;
}
