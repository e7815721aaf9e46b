/* Failures of threads, and interrupts.
 *
 * A failure jumps to the begin of the thread's part of a parallel region, where the thread waits
 * for the others as ever; the region's end jumps on to the run's. Of several failures that of the
 * first iterations is told: threads get their parts in the loop's order, and whoever has an earlier
 * one goes on until it ends or fails.
 *
 * An interrupt comes as a signal to every thread of the run, again and again (`avial_stop_here`)
 * until the run has ended. It jumps where it finds the thread in the program's own code: there it
 * has no lock of anybody else, of malloc or OpenMP, say. */
#ifdef __linux__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr, the registers of a signal's context */
#endif
#include <link.h>
#endif
#include "stopping.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*Micro)(int32_t *, int32_t *, ...);
typedef void (*Region)(int32_t *, int32_t *, void *);

AVIAL_GLOBAL const char *avial_failed;
AVIAL_GLOBAL void (*avial_here_fork_call)(void *, int32_t, void (*)(int32_t *, int32_t *, ...),
                                          ...);
AVIAL_GLOBAL void (*avial_here_for_static_init_8u)(void *, int32_t, int32_t, int32_t *, uint64_t *,
                                                   uint64_t *, int64_t *, int64_t, int64_t);
AVIAL_GLOBAL void (*avial_here_dispatch_init_8u)(void *, int32_t, int32_t, uint64_t, uint64_t,
                                                 int64_t, int64_t);
AVIAL_GLOBAL int32_t (*avial_here_dispatch_next_8u)(void *, int32_t, int32_t *, uint64_t *,
                                                    uint64_t *, int64_t *);

/* Of this thread: where a failure goes (nowhere: it ends the process), the iteration that its part
 * begins with, and the loop that is being dealt out to it. */
static _Thread_local jmp_buf *catcher;
static _Thread_local u64 part_begin;
static _Thread_local struct {
    void *place;
    int32_t thread;
} dealt;

/* The failure to tell of. */
static struct {
    const char *text;
    u64 begin;
} failure;
static atomic_flag telling = ATOMIC_FLAG_INIT;

static atomic_bool running, stopping;

/* The run's threads, by their numbers in the team. */
enum { MOST_THREADS = 512 };
static pthread_t threads[MOST_THREADS];
static atomic_bool present[MOST_THREADS];

static void hear_signals(void);

static void set_present(i64 number, bool is)
{
    if (number < 0 || number >= MOST_THREADS) return;
    if (is) {
        hear_signals();
        threads[number] = pthread_self();
    }
    atomic_store(&present[number], is);
}

static _Noreturn void jump(void)
{
    jmp_buf *to = catcher;
    catcher = NULL; /* no signal jumps from here on */
    longjmp(*to, 1);
}

/* Leaves what the thread is at, in such a run. */
static void leave_here(const char *text)
{
    if (!catcher) return;
    jmp_buf *to = catcher;
    catcher = NULL;
    while (atomic_flag_test_and_set(&telling)) continue;
    if (!failure.text || part_begin < failure.begin)
        failure.text = text, failure.begin = part_begin;
    atomic_flag_clear(&telling);
    longjmp(*to, 1);
}

void avial_fail(const char *text, int64_t line, int64_t column)
{
    leave_here(text);
    const int64_t words[] = {(int64_t)(intptr_t)text, ASSERTED, 0, 0, line, column};
    avial_outside(-1, words);
}

_Noreturn void avial_die(const char *text, int64_t line, int64_t column)
{
    leave_here(text);
    fprintf(stderr, "%" PRId64 ":%" PRId64 ": an assertion does not hold: %s\n", line, column, text);
    abort();
}

INTERNAL i64 until_stopped(void (*work)(const HereCall *), const HereCall *given)
{
    jmp_buf end;
    failure.text = NULL;
    part_begin = 0;
    atomic_store(&stopping, false);
    set_present(0, true);
    atomic_store(&running, true);
    bool jumped = setjmp(end);
    if (!jumped) {
        catcher = &end;
        work(given);
        catcher = NULL;
    }
    atomic_store(&running, false);
    set_present(0, false);
    if (!jumped) return HERE_DONE;
    avial_failed = failure.text;
    return atomic_load(&stopping) ? HERE_STOPPED : HERE_FAILED;
}

/* Threads -------------------------------------------------------------------------------------- */

/* A thread's part of a region. */
static void guarded(int32_t *thread, int32_t *number, void *body, void *captured)
{
    jmp_buf end, *volatile outer = catcher;
    dealt.place = NULL;
    set_present(*number, true);
    if (!setjmp(end)) {
        Region run_part;
        memcpy(&run_part, &body, sizeof run_part);
        catcher = &end;
        run_part(thread, number, captured);
        catcher = NULL;
    } else if (dealt.place) { /* nobody gets more of it before everybody has been told so */
        int32_t last;
        u64 low, high;
        i64 stride;
        while (avial_here_dispatch_next_8u(dealt.place, dealt.thread, &last, &low, &high, &stride))
            continue;
    }
    if (*number) set_present(*number, false);
    part_begin = 0;
    catcher = outer;
}

void avial_fork_call_here(void *place, int32_t count, void (*body)(int32_t *, int32_t *, ...), ...)
{
    va_list given;
    va_start(given, body);
    void *captured = count ? va_arg(given, void *) : NULL, *address;
    va_end(given);
    memcpy(&address, &body, sizeof address);
    Micro micro;
    void (*own)(int32_t *, int32_t *, void *, void *) = guarded;
    memcpy(&micro, &own, sizeof micro);
    avial_here_fork_call(place, 2, micro, address, captured);
    if ((failure.text || atomic_load(&stopping)) && catcher) jump();
}

void avial_for_static_init_8u_here(void *place, int32_t thread, int32_t schedule, int32_t *last,
                                   uint64_t *lower, uint64_t *upper, int64_t *stride, int64_t step,
                                   int64_t chunk)
{
    avial_here_for_static_init_8u(place, thread, schedule, last, lower, upper, stride, step, chunk);
    part_begin = *lower;
}

void avial_dispatch_init_8u_here(void *place, int32_t thread, int32_t schedule, uint64_t lower,
                                 uint64_t upper, int64_t step, int64_t chunk)
{
    avial_here_dispatch_init_8u(place, thread, schedule, lower, upper, step, chunk);
    dealt.place = place;
    dealt.thread = thread;
}

int32_t avial_dispatch_next_8u_here(void *place, int32_t thread, int32_t *last, uint64_t *lower,
                                    uint64_t *upper, int64_t *stride)
{
    int32_t more = avial_here_dispatch_next_8u(place, thread, last, lower, upper, stride);
    if (more)
        part_begin = *lower;
    else
        dealt.place = NULL;
    return more;
}

/* Interrupts ----------------------------------------------------------------------------------- */

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
AVIAL_GLOBAL int64_t avial_stops_here = 1;

#define STOP (SIGRTMIN + 11)

/* OpenMP's threads may begin with all signals blocked. */
static void hear_signals(void)
{
    static _Thread_local bool hears;
    if (hears) return;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, STOP);
    hears = !pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static struct sigaction before; /* of SIGINT */
static atomic_int told = -1;    /* the descriptor of the bell */
static uintptr_t code_begin, code_end;

static int find_code(struct dl_phdr_info *info, size_t size, void *of_this)
{
    (void)size;
    uintptr_t at;
    memcpy(&at, of_this, sizeof at);
    for (int k = 0; k < info->dlpi_phnum; k++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
        uintptr_t end = begin + info->dlpi_phdr[k].p_memsz;
        if (info->dlpi_phdr[k].p_type != PT_LOAD || at < begin || at >= end) continue;
        code_begin = begin, code_end = end;
        return 1;
    }
    return 0;
}

static uintptr_t interrupted_at(const void *context)
{
    const ucontext_t *all = context;
#ifdef __x86_64__
    return (uintptr_t)all->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)all->uc_mcontext.pc;
#endif
}

static void stop(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t at = interrupted_at(context);
    if (catcher && atomic_load(&stopping) && at >= code_begin && at < code_end) jump();
}

static void interrupted(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    atomic_store(&stopping, true);
    ssize_t written = write(atomic_load(&told), "", 1);
    (void)written; /* a full pipe has rung before */
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
    errno = kept;
}

INTERNAL void listen_to_interrupts(i64 bell)
{
    if (bell < 0) return;
    int64_t (*here)(const HereCall *) = avial_run_here;
    if (!code_end) dl_iterate_phdr(find_code, &here);
    struct sigaction mine = {.sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&mine.sa_mask);
    mine.sa_sigaction = stop;
    mine.sa_flags |= SA_NODEFER; /* a jump does not give the signal free */
    if (sigaction(SIGINT, NULL, &before) || sigaction(STOP, &mine, NULL)) return;
    if (!(before.sa_flags & SA_SIGINFO) &&
        (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN))
        return;
    mine.sa_sigaction = interrupted;
    mine.sa_flags &= ~SA_NODEFER;
    atomic_store(&told, (int)bell);
    sigaction(SIGINT, &mine, NULL);
}

INTERNAL void listen_no_more(void)
{
    if (atomic_exchange(&told, -1) >= 0) sigaction(SIGINT, &before, NULL);
}

int64_t avial_stop_here(void)
{
    if (!atomic_load(&running)) return 0;
    for (i64 k = 0; k < MOST_THREADS; k++)
        if (atomic_load(&present[k])) pthread_kill(threads[k], STOP);
    return 1;
}
#else
AVIAL_GLOBAL int64_t avial_stops_here = 0;
static void hear_signals(void) {}
INTERNAL void listen_to_interrupts(i64 bell) { (void)bell; }
INTERNAL void listen_no_more(void) {}
int64_t avial_stop_here(void) { return 0; }
#endif
