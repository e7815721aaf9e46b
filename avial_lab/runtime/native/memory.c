/* Blocks of memory that are kept: a table of those in use and those that wait, under one lock. */
#ifdef __linux__
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#endif
#include "memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Blocks that are known of; the least bytes of one, below that malloc is as good; bytes of a large
 * page; bytes that are kept in blocks that nobody has. */
enum { BLOCKS = 64, LEAST = 1 << 16, LARGE_PAGE = 1 << 21, MOST_KEPT = 32 << 20 };

typedef struct {
    void *memory; /* none: the entry is free */
    size_t bytes;
    int taken;
} block_t;

static block_t blocks[BLOCKS];
static int used;    /* entries from there on have never been anybody's */
static size_t kept; /* bytes of the blocks that nobody has */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

/* The smallest block that nobody has and that is large enough, and not more than twice that. */
static void *kept_block(size_t bytes)
{
    block_t *best = NULL;
    for (block_t *each = blocks; each < blocks + used; each++) {
        int fits = each->memory && !each->taken && each->bytes >= bytes && each->bytes / 2 <= bytes;
        if (fits && (!best || each->bytes < best->bytes)) best = each;
    }
    if (!best) return NULL;
    best->taken = 1;
    kept -= best->bytes;
    return best->memory;
}

static block_t *entry_of(const void *memory)
{
    for (block_t *each = blocks; each < blocks + used; each++)
        if (each->memory == memory) return each;
    return NULL;
}

/* One that is nobody's; none where all are somebody's. */
static block_t *free_entry(void)
{
    block_t *entry = entry_of(NULL);
    if (!entry && used < BLOCKS) entry = &blocks[used++];
    return entry;
}

static void *new_block(size_t bytes)
{
    if (bytes < LARGE_PAGE) return malloc(bytes);
    void *memory = NULL;
    if (posix_memalign(&memory, LARGE_PAGE, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE); /* a wish: without it the pages are small ones */
#endif
    return memory;
}

HIDDEN void *avial_take(size_t bytes)
{
    if (bytes < LEAST) return malloc(bytes);
    lock();
    void *memory = kept_block(bytes);
    unlock();
    if (memory || !(memory = new_block(bytes))) return memory;
    lock();
    block_t *entry = free_entry();
    if (entry) *entry = (block_t){memory, bytes, 1}; /* else it goes back to the system at once */
    unlock();
    return memory;
}

HIDDEN void avial_give(void *memory)
{
    if (!memory) return;
    lock();
    block_t *entry = entry_of(memory);
    int keep = entry && entry->bytes <= MOST_KEPT - kept;
    if (keep) {
        entry->taken = 0;
        kept += entry->bytes;
    } else if (entry) {
        entry->memory = NULL;
    }
    unlock();
    if (!keep) free(memory);
}

EXPORTED void avial_reclaim(void)
{
    lock();
    for (block_t *each = blocks; each < blocks + used; each++)
        if (each->memory && each->taken) {
            free(each->memory);
            each->memory = NULL;
        }
    unlock();
}

EXPORTED void avial_drop(void)
{
    lock();
    for (block_t *each = blocks; each < blocks + used; each++)
        if (each->memory && !each->taken) {
            kept -= each->bytes;
            free(each->memory);
            each->memory = NULL;
        }
    unlock();
}
