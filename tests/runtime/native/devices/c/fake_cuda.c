/* libcuda.so.1 without a GPU: the calls of cuda_calls.h on memory of the host, at once. What is
 * tested with it is what the driver is asked; a kernel called `fill` stores its second argument and
 * the number of threads of the launch at its first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda_calls.h"

#define FAKE(name, parameters) CUresult name parameters;
CUDA_CALLS(FAKE)
CUDA_MAPPING_CALLS(FAKE)

static int current, kernel;

/* A stream, with how much was put into it (copies within the device alone), and an event, with how
 * much that was when it was recorded; how much the host has waited for, and how often. */
typedef struct {
    int64_t put;
} Line;
int64_t fake_over, fake_waits, fake_records, fake_loaded; /* the last: a cubin's fifth byte */

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
CUresult cuCtxSetCurrent(CUcontext context) { return context != &current; }
CUresult cuCtxSynchronize(void) { return 0; }
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
CUresult cuMemHostUnregister(void *memory) { return memory == NULL; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return memcpy((void *)(uintptr_t)to, from, bytes), stream == NULL;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return memcpy(to, (void *)(uintptr_t)from, bytes), stream == NULL;
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
    for (size_t k = 0; k < c->height; k++)
        memcpy(to + k * c->to_pitch, from + k * c->from_pitch, c->width_bytes);
    return stream == NULL;
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
    return *function = &kernel, strcmp(name, "fill") ? 500 : 0;
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
    int64_t *at = *(int64_t **)arguments[0];
    *at = *(int64_t *)arguments[1] + (int64_t)gx * gy * gz * bx * by * bz;
    return function != &kernel || stream == NULL;
}
CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return *stream = calloc(1, sizeof(Line)), flags != CU_NON_BLOCKING;
}
CUresult cuStreamDestroy_v2(CUstream stream) { return free(stream), 0; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return !stream || !event || flags;
}
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    return *event = calloc(1, sizeof(Line)), flags != CU_NO_TIMING;
}
CUresult cuEventDestroy_v2(CUevent event) { return free(event), 0; }
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    *(Line *)event = *(Line *)stream;
    return fake_records++, 0;
}
CUresult cuEventSynchronize(CUevent event)
{
    fake_over = ((Line *)event)->put;
    return fake_waits++, 0;
}
