/* An NVIDIA GPU by its driver alone, which is loaded when the first device is asked for. The primary
 * context is used, as CuPy and PyTorch do: what they allocate in this process is ours to use.
 *
 * An event is a queue and a number: that of a point in the queue. Most points nobody waits for. The
 * driver is asked to record one when somebody does, in one of the queue's `RING` objects; it then
 * stands for all points before. Whoever waits for an older point waits for the first that was
 * recorded after it, which is over no earlier. What a queue has waited for it need not wait for again.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_calls.h"
#include "driver.h"

enum { RING = 64, LOG_BYTES = 4096, MOST_ARGUMENTS = 256 };

#define DECLARE(name, parameters) CUresult(*name) parameters;
typedef struct {
    void *library;
    CUDA_CALLS(DECLARE)
    CUDA_MAPPING_CALLS(DECLARE)
    CUDA_PACKING_CALLS(DECLARE)
} Calls;

/* Addresses of which `count` parts have memory, each given by its first granule and one past its
 * last. */
typedef struct {
    CUdeviceptr address;
    size_t bytes;
    int64_t *runs, count;
} Mapped;

/* Room for a box of short rows on its way, in halves: on the device, on the host, and when the second
 * to use a half has it from the first and gives it back. */
typedef struct {
    CUstream host; /* the host's part; NULL before the first such box */
    CUdeviceptr there[2];
    void *here[2];
    CUevent full[2], empty[2], begun;
} Packing;

typedef struct {
    CUdevice device;
    CUcontext context;
    CUstream streams[QUEUES];
    CUevent events[QUEUES][RING];
    int64_t points[QUEUES];         /* how many there are */
    int64_t objects[QUEUES];        /* how often one was recorded */
    int64_t recorded[QUEUES][RING]; /* the point that each object stands for */
    int64_t waited[QUEUES][QUEUES], synchronised[QUEUES]; /* up to which point of another queue */
    Limits limits; /* but for the bytes that are free */
    CUmodule *modules;
    CUdeviceptr *addresses;
    int64_t module_count, address_count;
    Mapped *mapped;
    int64_t mapped_count;
    bool maps; /* memory by granules of `GRANULE` bytes */
    Packing packing[QUEUES];
} Cuda;

static int64_t cuda_opened; /* devices */

const char *avial_libcuda;

static Calls cu;
static char cuda_said[LOG_BYTES + 256] = "";
static const char *cuda_why(void) { return cuda_said; }

static bool cuda_refuse(const char *what, const char *words)
{
    snprintf(cuda_said, sizeof cuda_said, "%s: %s", what, words);
    return false;
}

/* Whether the call went well; else says what the driver says of it. */
static bool went_well(CUresult error, const char *what)
{
    const char *words = NULL;
    if (!error) return true;
    if (cu.cuGetErrorString) cu.cuGetErrorString(error, &words);
    char said[256];
    snprintf(said, sizeof said, "%s (CUDA error %d)", words ? words : "unknown error", error);
    return cuda_refuse(what, said);
}

#define FIND(name, parameters)                                                                 \
    if (found) {                                                                               \
        void *symbol = dlsym(cu.library, #name);                                               \
        memcpy(&cu.name, &symbol, sizeof symbol); /* ISO C has no cast for that */             \
        if (!symbol) found = cuda_refuse("the NVIDIA driver is too old", "it has no " #name); \
    }

#define FIND_ALSO(name, parameters)                                                            \
    {                                                                                          \
        void *symbol = dlsym(cu.library, #name);                                               \
        memcpy(&cu.name, &symbol, sizeof symbol);                                              \
        all = all && symbol;                                                                   \
    }

static bool driver_maps, driver_packs;

/* Loads the driver, once it is there. */
static bool load_driver(void)
{
    if (cu.library) return true;
    const char *name = avial_libcuda ? avial_libcuda : "libcuda.so.1";
    cu.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!cu.library) return cuda_refuse("there is no NVIDIA driver", dlerror());
    bool found = true;
    CUDA_CALLS(FIND)
    bool all = true;
    CUDA_MAPPING_CALLS(FIND_ALSO)
    driver_maps = all;
    all = true;
    CUDA_PACKING_CALLS(FIND_ALSO)
    driver_packs = all;
    if (found) found = went_well(cu.cuInit(0), "the NVIDIA driver did not start");
    if (!found) {
        dlclose(cu.library);
        cu = (Calls){0};
    }
    return found;
}

static int64_t cuda_count(void)
{
    int count = 0;
    if (!load_driver()) return -1;
    return went_well(cu.cuDeviceGetCount(&count), "GPUs cannot be counted") ? count : -1;
}

static void cuda_close(void *handle);
static bool ask_limits(const Cuda *c, Limits *to);

/* Whose memory is taken by granules. */
static CUallocation memory_of(const Cuda *c)
{
    return (CUallocation){.type = CU_PINNED, .location = {CU_ON_DEVICE, c->device}};
}

static bool can_map(const Cuda *c)
{
    int supported = 0;
    size_t least = 0;
    CUallocation kind = memory_of(c);
    return driver_maps && !cu.cuDeviceGetAttribute(&supported, CU_MAPS_MEMORY, c->device) &&
           supported && !cu.cuMemGetAllocationGranularity(&least, &kind, CU_LEAST) && least &&
           GRANULE % least == 0;
}

static void *cuda_open(int64_t number)
{
    int64_t count = cuda_count();
    if (count < 0) return NULL;
    if (number >= count) {
        char said[128];
        snprintf(said, sizeof said, "GPU %lld is asked for, and there are %lld", (long long)number,
                 (long long)count);
        cuda_refuse("the NVIDIA driver has no such device", said);
        return NULL;
    }
    Cuda *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    bool opened = went_well(cu.cuDeviceGet(&c->device, (int)number), "a GPU cannot be opened") &&
                  went_well(cu.cuDevicePrimaryCtxRetain(&c->context, c->device),
                            "a GPU has no context") &&
                  went_well(cu.cuCtxSetCurrent(c->context), "a GPU's context cannot be used");
    for (int q = 0; q < QUEUES && opened; q++) {
        opened = went_well(cu.cuStreamCreate(&c->streams[q], CU_NON_BLOCKING), "a GPU has no queue");
        for (int k = 0; k < RING && opened; k++)
            opened = went_well(cu.cuEventCreate(&c->events[q][k], CU_NO_TIMING),
                               "a GPU has no event");
    }
    cuda_opened++;
    c->maps = opened && can_map(c);
    if (opened && ask_limits(c, &c->limits)) return c;
    cuda_close(c);
    return NULL;
}

static bool use(const Cuda *c)
{
    return went_well(cu.cuCtxSetCurrent(c->context), "a GPU's context cannot be used");
}

static bool unmap_memory(Mapped *m);
static void drop_packing(Packing *p);

static void cuda_close(void *handle)
{
    Cuda *c = handle;
    cuda_opened--;
    if (c->context && !cu.cuCtxSetCurrent(c->context)) {
        cu.cuCtxSynchronize();
        for (int64_t k = 0; k < c->module_count; k++) cu.cuModuleUnload(c->modules[k]);
        for (int64_t k = 0; k < c->address_count; k++) cu.cuMemFree_v2(c->addresses[k]);
        for (int64_t k = 0; k < c->mapped_count; k++) unmap_memory(&c->mapped[k]);
        for (int q = 0; q < QUEUES; q++) {
            drop_packing(&c->packing[q]);
            for (int k = 0; k < RING; k++)
                if (c->events[q][k]) cu.cuEventDestroy_v2(c->events[q][k]);
            if (c->streams[q]) cu.cuStreamDestroy_v2(c->streams[q]);
        }
    }
    if (c->context) cu.cuDevicePrimaryCtxRelease_v2(c->device);
    free(c->modules), free(c->addresses), free(c->mapped), free(c);
}

static bool ask_limits(const Cuda *c, Limits *to)
{
    struct {
        int attribute;
        int64_t *to;
    } asked[] = {
        {CU_BLOCK_THREADS, &to->block_threads}, {CU_BLOCK_X, &to->block[0]},
        {CU_BLOCK_X + 1, &to->block[1]},        {CU_BLOCK_X + 2, &to->block[2]},
        {CU_GRID_X, &to->grid[0]},              {CU_GRID_X + 1, &to->grid[1]},
        {CU_GRID_X + 2, &to->grid[2]},          {CU_SHARED_BYTES, &to->shared_bytes},
    };
    int value, major, minor;
    for (size_t k = 0; k < sizeof asked / sizeof asked[0]; k++) {
        if (!went_well(cu.cuDeviceGetAttribute(&value, asked[k].attribute, c->device),
                       "a GPU does not tell its limits"))
            return false;
        *asked[k].to = value;
    }
    bool told =
        went_well(cu.cuDeviceGetAttribute(&major, CU_CAPABILITY_MAJOR, c->device),
                  "a GPU does not tell its compute capability") &&
        went_well(cu.cuDeviceGetAttribute(&minor, CU_CAPABILITY_MINOR, c->device),
                  "a GPU does not tell its compute capability") &&
        went_well(cu.cuDeviceGetName(to->name, sizeof to->name, c->device), "a GPU has no name");
    if (!told) return false;
    to->capability = 10 * major + minor;
    return true;
}

static bool cuda_limits(void *handle, Limits *to)
{
    Cuda *c = handle;
    size_t available, total;
    *to = c->limits;
    if (!use(c) ||
        !went_well(cu.cuMemGetInfo_v2(&available, &total), "a GPU does not tell its memory"))
        return false;
    to->memory_bytes = (int64_t)total;
    to->free_bytes = (int64_t)available;
    return true;
}

/* Memory --------------------------------------------------------------------------------------- */

/* Room for one more pointer in a list of `count`, doubled at powers of two; NULL where there is
 * none. */
static void *with_room(void *list, int64_t count)
{
    if (count & (count - 1)) return list;
    return realloc(list, (size_t)(count ? 2 * count : 1) * sizeof(void *));
}

static uint64_t cuda_allocate(void *handle, int64_t bytes)
{
    Cuda *c = handle;
    CUdeviceptr address;
    char what[128];
    snprintf(what, sizeof what, "a GPU has no memory for %lld bytes", (long long)bytes);
    void *list = with_room(c->addresses, c->address_count);
    if (!list || !use(c)) return 0;
    c->addresses = list;
    if (!went_well(cu.cuMemAlloc_v2(&address, bytes > 0 ? (size_t)bytes : 1), what)) return 0;
    c->addresses[c->address_count++] = address;
    return address;
}

static bool unmap_memory(Mapped *m)
{
    bool well = true;
    for (int64_t k = 0; k < m->count; k++) {
        int64_t first = m->runs[2 * k] * GRANULE, last = m->runs[2 * k + 1] * GRANULE;
        well &= went_well(cu.cuMemUnmap(m->address + (uint64_t)first, (size_t)(last - first)),
                          "memory of a GPU is not unmapped");
    }
    free(m->runs);
    m->runs = NULL;
    return went_well(cu.cuMemAddressFree(m->address, m->bytes), "addresses of a GPU are not freed") &&
           well;
}

/* Memory for one part, which lives as long as it is mapped. */
static bool map_part(const Cuda *c, CUdeviceptr at, size_t bytes)
{
    CUmemory memory = 0;
    CUallocation kind = memory_of(c);
    CUaccess access = {kind.location, CU_READ_WRITE};
    char what[128];
    snprintf(what, sizeof what, "a GPU has no memory for %zu bytes", bytes);
    if (!went_well(cu.cuMemCreate(&memory, bytes, &kind, 0), what)) return false;
    bool mapped = went_well(cu.cuMemMap(at, bytes, 0, memory, 0), "memory of a GPU is not mapped");
    bool well = mapped && went_well(cu.cuMemSetAccess(at, bytes, &access, 1),
                                    "memory of a GPU is not mapped");
    cu.cuMemRelease(memory);
    if (mapped && !well) cu.cuMemUnmap(at, bytes);
    return well;
}

/* Not where several GPUs are driven: what is mapped for one of them no other one may read. */
static bool cuda_maps(void *handle)
{
    const Cuda *c = handle;
    return c->maps && cuda_opened == 1;
}

static uint64_t cuda_reserve(void *handle, int64_t bytes, const int64_t *runs, int64_t count)
{
    Cuda *c = handle;
    Mapped m = {.bytes = (size_t)((bytes + GRANULE - 1) / GRANULE * GRANULE)};
    if (!use(c)) return 0;
    Mapped *list = realloc(c->mapped, (size_t)(c->mapped_count + 1) * sizeof *list);
    if (!list) return 0;
    c->mapped = list;
    m.runs = malloc((size_t)(count + 1) * 2 * sizeof *m.runs);
    if (!m.runs) return 0;
    if (count) memcpy(m.runs, runs, (size_t)count * 2 * sizeof *m.runs);
    if (!went_well(cu.cuMemAddressReserve(&m.address, m.bytes, 0, 0, 0), "a GPU has no addresses")) {
        free(m.runs);
        return 0;
    }
    for (; m.count < count; m.count++) {
        int64_t first = runs[2 * m.count] * GRANULE, last = runs[2 * m.count + 1] * GRANULE;
        if (!map_part(c, m.address + (uint64_t)first, (size_t)(last - first))) break;
    }
    if (m.count < count) {
        char why[sizeof cuda_said];
        memcpy(why, cuda_said, sizeof why);
        unmap_memory(&m);
        memcpy(cuda_said, why, sizeof why);
        return 0;
    }
    c->mapped[c->mapped_count++] = m;
    return m.address;
}

static bool cuda_release(void *handle, uint64_t address)
{
    Cuda *c = handle;
    for (int64_t k = 0; k < c->mapped_count; k++)
        if (c->mapped[k].address == address) {
            Mapped m = c->mapped[k];
            c->mapped[k] = c->mapped[--c->mapped_count];
            return use(c) && unmap_memory(&m);
        }
    for (int64_t k = 0; k < c->address_count; k++)
        if (c->addresses[k] == address) {
            c->addresses[k] = c->addresses[--c->address_count];
            return use(c) && went_well(cu.cuMemFree_v2(address), "memory of a GPU is not freed");
        }
    return cuda_refuse("memory of a GPU is not freed", "the device has none at that address");
}

/* What is refused, as where two arrays share a page, is copied all the same, only slower. */
static bool cuda_pin(void *handle, void *memory, int64_t bytes)
{
    return use(handle) && !cu.cuMemHostRegister_v2(memory, (size_t)bytes, 0);
}

static void cuda_unpin(void *handle, void *memory)
{
    if (use(handle)) cu.cuMemHostUnregister(memory);
}

/* What was freed into a pool of CuPy's or PyTorch's is the driver's still. */
static bool cuda_holds(void *handle, uint64_t address, int64_t bytes)
{
    Cuda *c = handle;
    unsigned type = 0;
    int ordinal = -1;
    size_t room = 0;
    CUdeviceptr begin = 0;
    if (!use(c)) return false;
    if (!bytes) return true;
    if (cu.cuPointerGetAttribute(&type, CU_MEMORY_TYPE, address) ||
        cu.cuPointerGetAttribute(&ordinal, CU_ORDINAL, address))
        return cuda_refuse("a GPU has no such memory", "no GPU has memory there, or it was freed");
    if (type != CU_DEVICE || ordinal != c->device) {
        char said[128];
        snprintf(said, sizeof said, type == CU_DEVICE ? "it lies on GPU %d, and the program runs on GPU %d"
                                                      : "it lies in the host's memory", ordinal, c->device);
        return cuda_refuse("a GPU has no such memory", said);
    }
    if (!cu.cuMemGetAddressRange_v2(&begin, &room, address) &&
        address + (uint64_t)bytes > begin + room)
        return cuda_refuse("a GPU has no such memory", "it reaches beyond the memory that was taken there");
    return true;
}

static bool cuda_after(void *handle, uint64_t stream)
{
    Cuda *c = handle;
    CUevent event = NULL;
    if (!use(c) || !went_well(cu.cuEventCreate(&event, CU_NO_TIMING), "a GPU has no event"))
        return false;
    bool well = went_well(cu.cuEventRecord(event, (CUstream)(uintptr_t)stream),
                          "the stream of an array cannot be waited for");
    for (int q = 0; q < QUEUES && well; q++)
        well = went_well(cu.cuStreamWaitEvent(c->streams[q], event, 0), "a GPU's queue failed");
    cu.cuEventDestroy_v2(event); /* the driver keeps it as long as somebody waits */
    return well;
}

/* Queues --------------------------------------------------------------------------------------- */

typedef struct {
    const BoxCopy *copy;
    CUstream stream;
    CUresult error;
} Copying;

static void copy_run(void *context, uint64_t here, uint64_t there, int64_t bytes)
{
    Copying *c = context;
    void *host = (void *)(uintptr_t)there;
    if (c->error) return;
    if (c->copy->kind == COPY_IN)
        c->error = cu.cuMemcpyHtoDAsync_v2(here, host, (size_t)bytes, c->stream);
    else if (c->copy->kind == COPY_OUT)
        c->error = cu.cuMemcpyDtoHAsync_v2(host, here, (size_t)bytes, c->stream);
    else c->error = cu.cuMemcpyAsync(here, there, (size_t)bytes, c->stream);
}

/* The runs of the innermost dimension in one call. */
static void copy_rows(void *context, uint64_t here, uint64_t there, int64_t bytes)
{
    Copying *c = context;
    const BoxCopy *b = c->copy;
    bool in = b->kind == COPY_IN, out = b->kind == COPY_OUT;
    void *host = (void *)(uintptr_t)there;
    CUcopy2d rows = {
        .from_type = in ? CU_HOST : CU_DEVICE,
        .from_host = in ? host : NULL,
        .from_device = in ? 0 : out ? here : there,
        .from_pitch = (size_t)(out ? b->here[0] : b->there[0]),
        .to_type = out ? CU_HOST : CU_DEVICE,
        .to_host = out ? host : NULL,
        .to_device = out ? 0 : here,
        .to_pitch = (size_t)(out ? b->there[0] : b->here[0]),
        .width_bytes = (size_t)bytes,
        .height = (size_t)b->count[0],
    };
    if (!c->error) c->error = cu.cuMemcpy2DAsync_v2(&rows, c->stream);
}

static CUresult copy_box(const BoxCopy *copy, CUstream stream)
{
    Copying all = {copy, stream, 0};
    uint64_t there = copy->kind == COPY_WITHIN ? copy->source : (uint64_t)(uintptr_t)copy->host;
    bool near = copy->dims > 0 && copy->here[0] < GRANULE && /* else nothing may be mapped between */
                (copy->kind != COPY_WITHIN || copy->there[0] < GRANULE);
    if (near && copy->here[0] >= copy->run_bytes && copy->there[0] >= copy->run_bytes) {
        BoxCopy outer = *copy; /* without the innermost dimension */
        outer.dims--;
        if (copy->count[0] < 1) return 0;
        memmove(outer.count, copy->count + 1, sizeof outer.count - sizeof outer.count[0]);
        memmove(outer.here, copy->here + 1, sizeof outer.here - sizeof outer.here[0]);
        memmove(outer.there, copy->there + 1, sizeof outer.there - sizeof outer.there[0]);
        for_each_run(&outer, copy->device, there, copy_rows, &all);
    } else for_each_run(copy, copy->device, there, copy_run, &all);
    return all.error;
}

/* Packed boxes ---------------------------------------------------------------------------------- */

/* A column of an array has as many rows as the array, of an element each, and over the bus each of
 * them is a transfer. The device packs such a box, one copy brings it to pinned memory, and the host
 * unpacks it in a queue of its own; in halves, so that all three go on at once. In: the reverse.
 *
 *     queue         pack ─► copy ●        pack ─► copy ●       ○        ● = record, ○ = wait
 *     host's queue              ○ unpack ●            ○ unpack ●
 */
enum { LEAST_ROWS = 64, SHORT_ROW = 512, HALF = 1 << 20 }; /* bytes; no plan counts these halves */

static void drop_packing(Packing *p)
{
    for (int h = 0; h < 2; h++) {
        if (p->there[h]) cu.cuMemFree_v2(p->there[h]);
        if (p->here[h]) cu.cuMemFreeHost(p->here[h]);
        if (p->full[h]) cu.cuEventDestroy_v2(p->full[h]);
        if (p->empty[h]) cu.cuEventDestroy_v2(p->empty[h]);
    }
    if (p->begun) cu.cuEventDestroy_v2(p->begun);
    if (p->host) cu.cuStreamDestroy_v2(p->host);
    *p = (Packing){0};
}

static bool can_pack(Packing *p)
{
    if (p->host) return true;
    bool well = !cu.cuStreamCreate(&p->host, CU_NON_BLOCKING) &&
                !cu.cuEventCreate(&p->begun, CU_NO_TIMING);
    for (int h = 0; h < 2 && well; h++)
        well = !cu.cuMemAlloc_v2(&p->there[h], HALF) && !cu.cuMemAllocHost_v2(&p->here[h], HALF) &&
               !cu.cuEventCreate(&p->full[h], CU_NO_TIMING) &&
               !cu.cuEventCreate(&p->empty[h], CU_NO_TIMING);
    if (!well) drop_packing(p);
    return well;
}

static int64_t bytes_of_copy(const BoxCopy *copy)
{
    int64_t bytes = copy->run_bytes;
    for (int64_t d = 0; d < copy->dims; d++) bytes *= copy->count[d];
    return bytes;
}

static void into_host(void *unused, uint64_t packed, uint64_t there, int64_t bytes)
{
    (void)unused;
    memcpy((void *)(uintptr_t)there, (const void *)(uintptr_t)packed, (size_t)bytes);
}

static void out_of_host(void *unused, uint64_t packed, uint64_t there, int64_t bytes)
{
    into_host(unused, there, packed, bytes);
}

/* The host's part of a piece, whose `device` is the half in pinned memory. */
static void on_host(void *piece)
{
    const BoxCopy *copy = piece;
    for_each_run(copy, copy->device, (uint64_t)(uintptr_t)copy->host,
                 copy->kind == COPY_OUT ? into_host : out_of_host, NULL);
    free(piece);
}

typedef struct {
    Packing *packing;
    CUstream stream;
    int64_t pieces;
    CUresult error;
} Moving;

/* Puts it into the queues: what fits a half. */
static CUresult move_piece(Moving *m, const BoxCopy *copy)
{
    Packing *p = m->packing;
    int64_t half = m->pieces++ % 2, stride = copy->run_bytes;
    size_t bytes = (size_t)bytes_of_copy(copy);
    bool out = copy->kind == COPY_OUT;
    BoxCopy within = *copy, *host = malloc(sizeof *host);
    CUresult error = host ? 0 : CU_NO_MEMORY;
    if (error) return error;
    *host = *copy;
    host->device = (uint64_t)(uintptr_t)p->here[half];
    within.kind = COPY_WITHIN;
    within.device = out ? p->there[half] : copy->device;
    within.source = out ? copy->device : p->there[half];
    for (int64_t d = 0; d < copy->dims; stride *= copy->count[d++]) {
        host->here[d] = stride;
        within.here[d] = out ? stride : copy->here[d];
        within.there[d] = out ? copy->here[d] : stride;
    }
    CUstream first = out ? m->stream : p->host, second = out ? p->host : m->stream;
    error = cu.cuStreamWaitEvent(first, p->empty[half], 0);
    if (out && !error) error = copy_box(&within, m->stream);
    if (out && !error)
        error = cu.cuMemcpyDtoHAsync_v2(p->here[half], p->there[half], bytes, m->stream);
    if (!out && !error) error = cu.cuLaunchHostFunc(p->host, on_host, host);
    if (!error) error = cu.cuEventRecord(p->full[half], first);
    if (!error) error = cu.cuStreamWaitEvent(second, p->full[half], 0);
    if (out && !error) error = cu.cuLaunchHostFunc(p->host, on_host, host);
    if (!out && !error)
        error = cu.cuMemcpyHtoDAsync_v2(p->there[half], p->here[half], bytes, m->stream);
    if (!out && !error) error = copy_box(&within, m->stream);
    return error ? error : cu.cuEventRecord(p->empty[half], second);
}

/* In pieces that fit a half: parts of the outermost dimension, or of what lies in each of it. */
static void move_box(Moving *m, const BoxCopy *copy)
{
    BoxCopy piece = *copy, slab = *copy;
    int64_t d = slab.dims = copy->dims - 1;
    int64_t each = bytes_of_copy(&slab), most = each <= HALF ? HALF / each : 1;
    for (int64_t at = 0; at < copy->count[d] && !m->error; at += most) {
        piece.count[d] = copy->count[d] - at < most ? copy->count[d] - at : most;
        piece.device = slab.device = copy->device + (uint64_t)(at * copy->here[d]);
        piece.host = slab.host = copy->host + at * copy->there[d];
        if (each > HALF) move_box(m, &slab);
        else m->error = move_piece(m, &piece);
    }
}

static bool is_packed(const BoxCopy *copy)
{
    if (copy->kind == COPY_WITHIN || !copy->dims || copy->run_bytes > SHORT_ROW) return false;
    return copy->here[0] < GRANULE && bytes_of_copy(copy) >= LEAST_ROWS * copy->run_bytes &&
           bytes_of_copy(copy) > 0;
}

/* The queue goes on when the host's part is done, and that begins when the queue is there. */
static CUresult copy_packed(Packing *p, const BoxCopy *copy, CUstream stream)
{
    Moving m = {.packing = p, .stream = stream};
    m.error = cu.cuEventRecord(p->begun, stream);
    if (!m.error) m.error = cu.cuStreamWaitEvent(p->host, p->begun, 0);
    if (!m.error) move_box(&m, copy);
    if (!m.error && copy->kind == COPY_OUT)
        m.error = cu.cuStreamWaitEvent(stream, p->empty[(m.pieces - 1) % 2], 0);
    return m.error;
}

static bool cuda_copy(void *handle, enum Queue queue, const BoxCopy *copy)
{
    Cuda *c = handle;
    Packing *p = &c->packing[queue];
    if (!use(c)) return false;
    bool packed = driver_packs && is_packed(copy) && can_pack(p);
    return went_well(packed ? copy_packed(p, copy, c->streams[queue])
                            : copy_box(copy, c->streams[queue]),
                     "a copy to or from a GPU failed");
}

static bool cuda_launch(void *handle, enum Queue queue, const Launch *l)
{
    Cuda *c = handle;
    void *arguments[MOST_ARGUMENTS];
    if (!use(c)) return false;
    if (!launch_fits(&c->limits, l, cuda_said, sizeof cuda_said)) return false;
    if (l->arguments > MOST_ARGUMENTS)
        return cuda_refuse("a kernel cannot be launched", "it has more than 256 arguments");
    for (int64_t k = 0; k < l->arguments; k++)
        arguments[k] = (char *)(uintptr_t)l->data + l->offsets[k];
    for (int d = 0; d < 3; d++)
        if (!l->grid[d]) return true;
    if (l->shared_bytes > 48 << 10 &&
        !went_well(cu.cuFuncSetAttribute(l->kernel, CU_DYNAMIC_SHARED, (int)l->shared_bytes),
                   "a kernel gets no shared memory"))
        return false;
    return went_well(
        cu.cuLaunchKernel(l->kernel, (unsigned)l->grid[0], (unsigned)l->grid[1],
                          (unsigned)l->grid[2], (unsigned)l->block[0], (unsigned)l->block[1],
                          (unsigned)l->block[2], (unsigned)l->shared_bytes, c->streams[queue],
                          arguments, NULL),
        "a kernel cannot be launched");
}

static Event_ cuda_record(void *handle, enum Queue queue)
{
    Cuda *c = handle;
    return ++c->points[queue] * QUEUES + queue;
}

/* An object that is recorded at the event's point or after it; NULL where the driver refuses. */
static CUevent object_of(Cuda *c, Event_ event)
{
    int64_t q = event % QUEUES, point = event / QUEUES, last = c->objects[q], k = last;
    if (!last || c->recorded[q][last % RING] < point) {
        k = last + 1;
        if (!use(c) || !went_well(cu.cuEventRecord(c->events[q][k % RING], c->streams[q]),
                                  "a GPU's queue failed"))
            return NULL;
        c->recorded[q][k % RING] = c->points[q];
        c->objects[q] = k;
    }
    while (k > 1 && k > last - RING + 1 && c->recorded[q][(k - 1) % RING] >= point) k--;
    return c->events[q][k % RING];
}

static bool cuda_wait(void *handle, enum Queue queue, void *other, Event_ event)
{
    Cuda *c = handle;
    int64_t *waited = handle == other ? &c->waited[queue][event % QUEUES] : NULL;
    if (!event || (waited && (event % QUEUES == queue || *waited >= event / QUEUES))) return true;
    CUevent object = object_of(other, event);
    if (!object || !use(c)) return false;
    if (!went_well(cu.cuStreamWaitEvent(c->streams[queue], object, 0), "a GPU's queue failed"))
        return false;
    if (waited) *waited = event / QUEUES;
    return true;
}

static bool cuda_synchronise(void *handle, Event_ event)
{
    Cuda *c = handle;
    int64_t *done = &c->synchronised[event % QUEUES];
    if (!event || *done >= event / QUEUES) return true;
    CUevent object = object_of(c, event);
    if (!object || !use(c)) return false;
    if (!went_well(cu.cuEventSynchronize(object), "a GPU's queue failed")) return false;
    *done = event / QUEUES;
    return true;
}

static bool cuda_finish(void *handle)
{
    return use(handle) && went_well(cu.cuCtxSynchronize(), "a GPU's queue failed");
}

/* Kernels -------------------------------------------------------------------------------------- */

static void *cuda_load(void *handle, const char *image)
{
    Cuda *c = handle;
    CUmodule module = NULL;
    char log[LOG_BYTES] = "";
    int options[2] = {CU_LOG, CU_LOG_BYTES}, version = 0;
    void *values[2] = {log, (void *)(uintptr_t)sizeof log};
    void *list = with_room(c->modules, c->module_count);
    if (!list || !use(c)) return NULL;
    c->modules = list;
    CUresult error = cu.cuModuleLoadDataEx(&module, image, 2, options, values);
    if (!error) return c->modules[c->module_count++] = module;
    went_well(error, "the driver does not take the kernels");
    size_t said = strlen(cuda_said);
    cu.cuDriverGetVersion(&version);
    if (error == CU_NEWER_PTX) {
        int major = 0, minor = 0;
        const char *told = strstr(image, ".version ");
        if (told) sscanf(told, ".version %d.%d", &major, &minor);
        snprintf(cuda_said + said, sizeof cuda_said - said,
                 "; the driver is one of CUDA %d.%d, and PTX %d.%d needs a newer one", version / 1000,
                 version % 1000 / 10, major, minor);
        said = strlen(cuda_said);
        if (major >= 7) /* from there on the numbers go together, PTX 7.0 with CUDA 11.0 */
            snprintf(cuda_said + said, sizeof cuda_said - said, ": of CUDA %d.%d", major + 4, minor);
    }
    else if (log[0]) snprintf(cuda_said + said, sizeof cuda_said - said, "; it says: %s", log);
    return NULL;
}

static void *cuda_kernel(void *handle, void *module, const char *name)
{
    CUfunction found = NULL;
    char what[256];
    snprintf(what, sizeof what, "the kernels have none called %s", name);
    return use(handle) && went_well(cu.cuModuleGetFunction(&found, module, name), what) ? found
                                                                                       : NULL;
}

const Driver cuda_driver = {
    .name = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .limits = cuda_limits,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .copy = cuda_copy,
    .load = cuda_load,
    .kernel = cuda_kernel,
    .launch = cuda_launch,
    .record = cuda_record,
    .wait = cuda_wait,
    .synchronise = cuda_synchronise,
    .finish = cuda_finish,
    .why = cuda_why,
    .holds = cuda_holds,
    .after = cuda_after,
    .maps = cuda_maps,
    .reserve = cuda_reserve,
};
