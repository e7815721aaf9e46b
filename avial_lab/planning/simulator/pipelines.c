/* Pipelines -> when each device has done its last pass.
 *
 * A device does its passes in the order of the schedule, each as soon as the one before has ended
 * and what it reads has arrived: times are sums and maxima of times (max-plus algebra: Baccelli,
 * Cohen, Olsder, Quadrat 1992), in one walk over the passes. What is sent takes its latency, then
 * the way from device to device, on which messages follow one another; nobody waits for a send.
 *
 * Forward passes of a stage F, backward passes B (the last stage does both at once), gradients of
 * weights W, which are apart with zero bubble and fill what would be waiting.
 */
#include <stdint.h>
#include <stdlib.h>

enum { FORWARD, GPIPE, ALTERNATING, ZERO_BUBBLE };

typedef struct {
    int64_t devices, chunks, stages, turns;
    int32_t order;
    /* of each stage; `there` to the next stage, `back` to the one before */
    const double *forward, *backward, *late, *there_latency, *there, *back_latency, *back;
    double *arrived[2]; /* of each stage and turn what its F, its B reads; -1: not yet */
    int64_t *unit[2];   /* the same in units of a forward pass (zero bubble) */
    double *free;       /* of each device */
    double *way;        /* devices x devices: until when it is taken */
    int64_t *next, *unit_free, *begun, *ended, *waiting;
} Pipeline;

typedef struct {
    int is_back;
    int64_t stage, turn;
} Pass;

/* The n-th F or B of a device: p micro-batches of its first stage, of its second, ... */
static Pass in_blocks(const Pipeline *of, int64_t device, int64_t n, int is_back) {
    int64_t p = of->devices, whole = of->chunks * p;
    int64_t block = n / whole, inside = n % whole, left = of->turns - block * p;
    int64_t size = left < p ? left : p, chunk = inside / size;
    if (is_back) chunk = of->chunks - 1 - chunk;
    Pass pass = {is_back, chunk * p + device, block * p + inside % size};
    return pass;
}

/* The n-th pass of a device's queue: as many F as fill the pipeline, F and B by turns, the rest. */
static Pass queued(const Pipeline *of, int64_t device, int64_t n) {
    int64_t all = of->chunks * of->turns, later = of->devices - 1 - device, first = all;
    if (of->order >= ALTERNATING) {
        first = of->chunks == 1 ? later : 2 * later + (of->chunks - 1) * of->devices;
        if (first > all) first = all;
    }
    if (n < first) return in_blocks(of, device, n, 0);
    int64_t rest = all - first, after = n - first;
    if (after >= 2 * rest) return in_blocks(of, device, after - rest, 1);
    return in_blocks(of, device, after % 2 ? after / 2 : first + after / 2, (int)(after % 2));
}

static void send(Pipeline *of, int64_t from, int64_t to, int is_back, int64_t turn, double end) {
    double latency = is_back ? of->back_latency[from] : of->there_latency[from];
    double seconds = is_back ? of->back[from] : of->there[from];
    double *way = &of->way[from % of->devices * of->devices + to % of->devices];
    double begin = end + latency;
    if (begin < *way) begin = *way;
    *way = begin + seconds;
    of->arrived[is_back][to * of->turns + turn] = *way;
}

/* The pass at its time; whether it is the last stage's, F and B at once. */
static int run(Pipeline *of, int64_t device, Pass pass) {
    double ready = of->arrived[pass.is_back][pass.stage * of->turns + pass.turn];
    double begin = ready > of->free[device] ? ready : of->free[device];
    int turns_round = of->order != FORWARD && !pass.is_back && pass.stage == of->stages - 1;
    double end = begin + (pass.is_back ? of->backward[pass.stage] : of->forward[pass.stage]);
    if (turns_round) end += of->backward[pass.stage];
    of->free[device] = end;
    if (pass.is_back || turns_round) {
        if (pass.stage > 0) send(of, pass.stage, pass.stage - 1, 1, pass.turn, end);
    } else if (pass.stage + 1 < of->stages) {
        send(of, pass.stage, pass.stage + 1, 0, pass.turn, end);
    }
    return turns_round;
}

/* B of the last stage is in the queue, and done with its F. */
static int is_done(const Pipeline *of, Pass pass) {
    return pass.is_back && pass.stage == of->stages - 1;
}

/* Whether all passes could be done in the order of the queues. */
static int in_order(Pipeline *of) {
    int64_t each = of->chunks * of->turns * (of->order == FORWARD ? 1 : 2);
    for (;;) {
        int went_on = 0, left = 0;
        for (int64_t device = 0; device < of->devices; device++) {
            for (; of->next[device] < each; of->next[device]++) {
                Pass pass = queued(of, device, of->next[device]);
                if (is_done(of, pass)) continue;
                if (of->arrived[pass.is_back][pass.stage * of->turns + pass.turn] < 0) break;
                run(of, device, pass);
                went_on = 1;
            }
            left |= of->next[device] < each;
        }
        if (!left || !went_on) return !left;
    }
}

/* As above, in an order that is found in units of time, in which F, B and W take one each: W where
 * neither F nor B could begin, F of a micro-batch while fewer than `devices` of them are begun. */
static int without_bubble(Pipeline *of) {
    int64_t each = 2 * of->turns, total = 0;
    for (int64_t device = 0; device < of->devices; device++) total += 3 * of->turns;
    for (int64_t now = 0; total > 0; now++) {
        if (now > 8 * (of->turns + of->devices)) return 0;
        for (int64_t device = 0; device < of->devices; device++) {
            if (of->unit_free[device] > now) continue;
            Pass pass = {0, 0, 0};
            int may = 0;
            for (; of->next[device] < each; of->next[device]++) {
                pass = queued(of, device, of->next[device]);
                if (is_done(of, pass)) continue;
                int64_t at = pass.stage * of->turns + pass.turn;
                may = of->unit[pass.is_back][at] >= 0 && of->unit[pass.is_back][at] <= now;
                if (!pass.is_back) may &= of->begun[device] - of->ended[device] < of->devices;
                break;
            }
            if (may) {
                int both = run(of, device, pass), back = pass.is_back || both;
                int64_t end = now + 1 + both, to = pass.stage + (back ? -1 : 1);
                if (to >= 0 && to < of->stages) of->unit[back][to * of->turns + pass.turn] = end;
                of->unit_free[device] = end;
                of->begun[device] += !pass.is_back;
                of->waiting[device] += back;
                of->next[device]++;
                total -= 1 + both;
            } else if (of->waiting[device] > 0) {
                of->free[device] += of->late[device];
                of->unit_free[device] = now + 1;
                of->waiting[device]--;
                of->ended[device]++;
                total--;
            }
        }
    }
    return 1;
}

/* end: rows x devices; of stages: rows x (devices * chunks). How many rows have no order in which
 * all ends (-1: no memory); the times of these are negative. */
int64_t avial_pipelines(int64_t rows, int64_t devices, int64_t chunks, const int64_t *turns,
                        const int32_t *order, const double *forward, const double *backward,
                        const double *late, const double *there_latency, const double *there,
                        const double *back_latency, const double *back, double *end) {
    int64_t most = 1, stages = devices * chunks, stuck = 0;
    for (int64_t row = 0; row < rows; row++)
        if (turns[row] > most) most = turns[row];
    double *reals = malloc(sizeof(double) * (size_t)(2 * stages * most + devices * (devices + 1)));
    int64_t *whole = malloc(sizeof(int64_t) * (size_t)(2 * stages * most + 5 * devices));
    if (!reals || !whole) {
        free(reals);
        free(whole);
        return -1;
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = row * stages, size = stages * turns[row];
        Pipeline of = {.devices = devices, .chunks = chunks, .stages = stages};
        of.turns = turns[row];
        of.order = order[row];
        of.forward = forward + at;
        of.backward = backward + at;
        of.late = late + at;
        of.there_latency = there_latency + at;
        of.there = there + at;
        of.back_latency = back_latency + at;
        of.back = back + at;
        for (int way = 0; way < 2; way++) {
            of.arrived[way] = reals + way * size;
            of.unit[way] = whole + way * size;
        }
        of.free = reals + 2 * size;
        of.way = of.free + devices;
        of.next = whole + 2 * size;
        of.unit_free = of.next + devices;
        of.begun = of.unit_free + devices;
        of.ended = of.begun + devices;
        of.waiting = of.ended + devices;
        for (int64_t k = 0; k < 2 * size; k++) {
            int given = k < of.turns; /* what the first stage reads is there */
            reals[k] = given ? 0 : -1;
            whole[k] = given ? 0 : -1;
        }
        for (int64_t k = 0; k < devices * (devices + 1); k++) of.free[k] = 0;
        for (int64_t k = 0; k < 5 * devices; k++) of.next[k] = 0;
        int ended = of.order == ZERO_BUBBLE ? without_bubble(&of) : in_order(&of);
        for (int64_t k = 0; k < devices; k++) end[row * devices + k] = ended ? of.free[k] : -1;
        stuck += !ended;
    }
    free(reals);
    free(whole);
    return stuck;
}
