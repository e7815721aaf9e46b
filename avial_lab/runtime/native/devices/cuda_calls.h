/* The calls of NVIDIA's driver that are made, without its header: libcuda.so.1 is loaded by name, and
 * what is missing there is told. Types and numbers are those of cuda.h, which keeps them for good;
 * names end in _v2 where the driver's do. */
#ifndef AVIAL_CUDA_CALLS_H
#define AVIAL_CUDA_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0: it went well */
typedef int CUdevice;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent;
typedef uint64_t CUdeviceptr;

enum {
    CU_BLOCK_THREADS = 1, /* CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, and its like */
    CU_BLOCK_X = 2,
    CU_GRID_X = 5,
    CU_CAPABILITY_MAJOR = 75,
    CU_CAPABILITY_MINOR = 76,
    CU_SHARED_BYTES = 97, /* with opt-in */
    CU_MAPS_MEMORY = 102, /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    CU_DYNAMIC_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    CU_NON_BLOCKING = 1,
    CU_NO_TIMING = 2,
    CU_LOG = 5, /* CU_JIT_ERROR_LOG_BUFFER, and its size */
    CU_LOG_BYTES = 6,
    CU_HOST = 1, /* CU_MEMORYTYPE_… */
    CU_DEVICE = 2,
    CU_NO_DEVICE = 100,
    CU_NO_MEMORY = 2, /* CUDA_ERROR_OUT_OF_MEMORY */
    CU_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_… */
    CU_ORDINAL = 9,
    CU_NEWER_PTX = 222, /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
    CU_PINNED = 1,      /* CU_MEM_ALLOCATION_TYPE_PINNED */
    CU_ON_DEVICE = 1,   /* CU_MEM_LOCATION_TYPE_DEVICE */
    CU_READ_WRITE = 3,  /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
    CU_LEAST = 0,       /* CU_MEM_ALLOC_GRANULARITY_MINIMUM */
};

typedef unsigned long long CUmemory; /* CUmemGenericAllocationHandle */

/* CUmemLocation, CUmemAllocationProp_v1 and CUmemAccessDesc_v1 */
typedef struct {
    int type, device;
} CUlocation;
typedef struct {
    int type, handle_types;
    CUlocation location;
    void *windows;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
} CUallocation;
typedef struct {
    CUlocation location;
    int flags;
} CUaccess;

/* CUDA_MEMCPY2D_v2 */
typedef struct {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    CUdeviceptr from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    void *to_host;
    CUdeviceptr to_device;
    void *to_array;
    size_t to_pitch, width_bytes, height;
} CUcopy2d;

#define CUDA_CALLS(CALL)                                                                        \
    CALL(cuInit, (unsigned flags))                                                              \
    CALL(cuDriverGetVersion, (int *version))                                                    \
    CALL(cuGetErrorString, (CUresult error, const char **words))                                \
    CALL(cuDeviceGetCount, (int *count))                                                        \
    CALL(cuDeviceGet, (CUdevice * device, int number))                                          \
    CALL(cuDeviceGetName, (char *name, int capacity, CUdevice device))                          \
    CALL(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                    \
    CALL(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                      \
    CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                       \
    CALL(cuCtxSetCurrent, (CUcontext context))                                                  \
    CALL(cuCtxSynchronize, (void))                                                              \
    CALL(cuMemGetInfo_v2, (size_t *available, size_t *total))                                   \
    CALL(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                  \
    CALL(cuMemFree_v2, (CUdeviceptr address))                                                   \
    CALL(cuMemGetAddressRange_v2, (CUdeviceptr * begin, size_t *bytes, CUdeviceptr address))    \
    CALL(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr address))              \
    CALL(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))                    \
    CALL(cuMemHostUnregister, (void *memory))                                                   \
    CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))     \
    CALL(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))      \
    CALL(cuMemcpy2DAsync_v2, (const CUcopy2d *copy, CUstream stream))                           \
    CALL(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned count, int *options, \
                              void **values))                                                   \
    CALL(cuModuleUnload, (CUmodule module))                                                     \
    CALL(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))       \
    CALL(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                   \
    CALL(cuLaunchKernel, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
                          unsigned by, unsigned bz, unsigned shared, CUstream stream,           \
                          void **arguments, void **extra))                                      \
    CALL(cuStreamCreate, (CUstream * stream, unsigned flags))                                   \
    CALL(cuStreamDestroy_v2, (CUstream stream))                                                 \
    CALL(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                   \
    CALL(cuEventCreate, (CUevent * event, unsigned flags))                                      \
    CALL(cuEventDestroy_v2, (CUevent event))                                                    \
    CALL(cuEventRecord, (CUevent event, CUstream stream))                                       \
    CALL(cuEventSynchronize, (CUevent event))

/* Since CUDA 10.2; without them arrays are there as a whole. */
#define CUDA_MAPPING_CALLS(CALL)                                                                \
    CALL(cuMemGetAllocationGranularity, (size_t * granule, const CUallocation *kind, int option)) \
    CALL(cuMemAddressReserve, (CUdeviceptr * address, size_t bytes, size_t alignment,           \
                               CUdeviceptr wish, unsigned long long flags))                     \
    CALL(cuMemAddressFree, (CUdeviceptr address, size_t bytes))                                 \
    CALL(cuMemCreate, (CUmemory * memory, size_t bytes, const CUallocation *kind,               \
                       unsigned long long flags))                                               \
    CALL(cuMemRelease, (CUmemory memory))                                                       \
    CALL(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset, CUmemory memory,          \
                    unsigned long long flags))                                                  \
    CALL(cuMemUnmap, (CUdeviceptr address, size_t bytes))                                       \
    CALL(cuMemSetAccess, (CUdeviceptr address, size_t bytes, const CUaccess *access, size_t count))

/* Since CUDA 10; without them boxes of short rows move a row at a time. */
#define CUDA_PACKING_CALLS(CALL)                                                                \
    CALL(cuLaunchHostFunc, (CUstream stream, void (*function)(void *), void *argument))         \
    CALL(cuMemAllocHost_v2, (void **memory, size_t bytes))                                      \
    CALL(cuMemFreeHost, (void *memory))

#endif
